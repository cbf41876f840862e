import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Aido } from "@aido/sdk";
import type { DockerConfig } from "./config.ts";
import { ContainerLayer } from "./container-layer.ts";
import type { ModelClient } from "./model-client.ts";
import { runSession as runSessionWith, type SessionResult } from "./run-session.ts";
import type { SessionStore } from "./session-store.ts";

export { DOCKER_CONFIG, type DockerConfig, MAX_OUTPUT_CHARS } from "./config.ts";
export { ContainerLayer, type ExecResult } from "./container-layer.ts";
export { DockerError, type DockerErrorCode } from "./docker-error.ts";
export type { AgentMessage, ModelClient, ModelReply } from "./model-client.ts";
export { type AgentResult, MAX_STEPS } from "./run-agent.ts";
export type { SessionResult } from "./run-session.ts";
export type { Session, SessionStatus, SessionStore } from "./session-store.ts";
export { executeTool, formatResult, TOOLS, type ToolCall, type ToolDefinition } from "./tools.ts";
export { truncateOutput } from "./truncate-output.ts";

export interface AgentLayerOptions {
  /** An Aido to use; otherwise one is opened from the configuration at the first call. */
  aido?: Aido;
  config?: Partial<DockerConfig>;
  dataDir?: string;
  driver?: "auto" | "docker" | "local";
  /** Lines about containers; standard error by default. */
  log?: (line: string) => void;
}

export interface AgentLayer {
  readonly startContainer: ContainerLayer["startContainer"];
  readonly execInContainer: ContainerLayer["execInContainer"];
  readonly readFileInContainer: ContainerLayer["readFileInContainer"];
  readonly writeFileInContainer: ContainerLayer["writeFileInContainer"];
  readonly listDirectoryInContainer: ContainerLayer["listDirectoryInContainer"];
  readonly cleanupContainer: ContainerLayer["cleanupContainer"];
  runSession(task: string, options: RunSessionOptions): Promise<SessionResult>;
  /** Closes what the layer opened itself. */
  close(): Promise<void>;
}

export interface RunSessionOptions {
  model: ModelClient;
  /** Where the session is recorded; `sessions.db` in the data directory by default. */
  store?: SessionStore;
  maxSteps?: number;
  contextTokens?: number;
  signal?: AbortSignal;
}

export function createAgentLayer(options: AgentLayerOptions = {}): AgentLayer {
  let opened: Promise<Aido> | undefined;
  const open = async (): Promise<Aido> => {
    const { openDefaultAido } = await import("../compose.ts");
    return openDefaultAido({
      ...(options.dataDir === undefined ? {} : { dataDir: options.dataDir }),
      ...(options.driver === undefined ? {} : { driver: options.driver }),
    });
  };
  const aido = (): Promise<Aido> => {
    if (options.aido !== undefined) return Promise.resolve(options.aido);
    opened ??= open();
    return opened;
  };
  const log = options.log ?? ((line: string) => void process.stderr.write(`${line}\n`));
  const layer = new ContainerLayer({
    aido,
    log,
    ...(options.config === undefined ? {} : { config: options.config }),
  });

  return {
    startContainer: layer.startContainer,
    execInContainer: layer.execInContainer,
    readFileInContainer: layer.readFileInContainer,
    writeFileInContainer: layer.writeFileInContainer,
    listDirectoryInContainer: layer.listDirectoryInContainer,
    cleanupContainer: layer.cleanupContainer,
    runSession: async (task, { model, store, signal, ...limits }) => {
      const sessions = store ?? (await openSessions(options.dataDir ?? ".aido"));
      try {
        return await runSessionWith({ layer, store: sessions, model, ...limits }, task, signal);
      } finally {
        if (store === undefined) await sessions.close();
      }
    },
    close: async () => {
      const mine = await opened;
      opened = undefined;
      await mine?.close();
    },
  };
}

const shared = createAgentLayer();
export const {
  startContainer,
  execInContainer,
  readFileInContainer,
  writeFileInContainer,
  listDirectoryInContainer,
  cleanupContainer,
  runSession,
} = shared;
/** Ends the connections of the functions above, so that a program can exit. */
export const closeAgentLayer = (): Promise<void> => shared.close();

async function openSessions(dataDir: string): Promise<SessionStore> {
  const { SqliteSessionStore } = await import("./sqlite-session-store.ts");
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  return new SqliteSessionStore(join(dataDir, "sessions.db"));
}
