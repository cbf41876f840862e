import { isAidoError } from "../protocol/errors.ts";
import type { TerminalSize } from "../protocol/exec.ts";
import type { SidecarTerminal } from "../schemas/sidecar.ts";
import {
  object,
  type SidecarAgentResult,
  type SidecarCommandResult,
  text,
  toAgentResult,
  toCommandResult,
} from "./sidecar-answers.ts";
import { type SidecarOptions, SidecarRequests } from "./sidecar-request.ts";
import { type TerminalEvent, terminalEvents } from "./sidecar-terminal-events.ts";

export interface SidecarCommand {
  command: string;
  cwd?: string | undefined;
  env?: Readonly<Record<string, string>> | undefined;
  timeoutMs?: number | undefined;
  signal?: AbortSignal | undefined;
}

export interface SidecarAgentRequest {
  message: string;
  /** `default` when absent. */
  identifier?: string | undefined;
  sessionId?: string | undefined;
  model?: string | undefined;
  /** More than one turn; without it the message is a prompt of a single one. */
  maxTurns?: number | undefined;
  context?: Readonly<Record<string, unknown>> | undefined;
  timeoutMs?: number | undefined;
  signal?: AbortSignal | undefined;
}

export interface NewSidecarTerminal extends Partial<TerminalSize> {
  name?: string | undefined;
  shell?: string | undefined;
  cwd?: string | undefined;
  env?: Readonly<Record<string, string>> | undefined;
}

const UNAVAILABLE = 503;
type Encoding = "utf8" | "base64";

/** The sidecar API of one sandbox, aido's or another's that speaks the same. */
export class SidecarClient {
  readonly #requests: SidecarRequests;

  constructor(options: SidecarOptions) {
    this.#requests = new SidecarRequests(options);
  }

  /** False while the sandbox does not run; raises what keeps the server from answering. */
  async health(signal?: AbortSignal): Promise<boolean> {
    try {
      const answer = await this.#requests.json("/health", { signal });
      return text(object(answer)["status"]) === "ok";
    } catch (thrown) {
      if (isAidoError(thrown) && thrown.details["status"] === UNAVAILABLE) return false;
      throw thrown;
    }
  }

  /** To its end; a command that fails is a result with its exit code. */
  async exec({ command, cwd, env, timeoutMs, signal }: SidecarCommand): Promise<SidecarCommandResult> {
    const json = {
      command,
      ...(cwd === undefined || cwd === "" ? {} : { cwd }),
      ...(env === undefined || Object.keys(env).length === 0 ? {} : { env }),
      ...timeout(timeoutMs),
    };
    const call = { method: "POST", json, signal, waitMs: timeoutMs } as const;
    return toCommandResult(await this.#requests.json("/terminals/commands", call));
  }

  async runAgent({ signal, ...request }: SidecarAgentRequest): Promise<SidecarAgentResult> {
    const call = { method: "POST", json: toAgentBody(request), signal, waitMs: request.timeoutMs } as const;
    return toAgentResult(await this.#requests.json("/agents/run", call), request.sessionId);
  }

  /** SHA-256 and size of what is now in the file. */
  async writeFile(
    path: string,
    content: string,
    encoding: Encoding = "utf8",
  ): Promise<{ hash: string; size: number }> {
    const json = { path, content, ...(encoding === "utf8" ? {} : { encoding }) };
    const data = object(object(await this.#post("/files/write", json))["data"]);
    return { hash: text(data["hash"]), size: Number(data["size"] ?? 0) };
  }

  async readFile(path: string, encoding: Encoding = "utf8"): Promise<string> {
    const json = { path, ...(encoding === "utf8" ? {} : { encoding }) };
    return text(object(object(await this.#post("/files/read", json))["data"])["content"]);
  }

  async openTerminal(wanted: NewSidecarTerminal = {}): Promise<SidecarTerminal> {
    return dataOf<SidecarTerminal>(await this.#post("/terminals", wanted));
  }

  async terminals(): Promise<readonly SidecarTerminal[]> {
    return dataOf<SidecarTerminal[]>(await this.#requests.json("/terminals"));
  }

  async terminal(id: string): Promise<SidecarTerminal> {
    return dataOf<SidecarTerminal>(await this.#requests.json(terminalPath(id)));
  }

  /** Output from the offset on, each byte once though the connection breaks, then one `exit`. */
  stream(
    id: string,
    options: { offset?: number; signal?: AbortSignal } = {},
  ): AsyncGenerator<TerminalEvent, void, undefined> {
    return terminalEvents(this.#requests, terminalPath(id), options);
  }

  /** Types the command and the return key. */
  async execute(id: string, command: string): Promise<void> {
    await this.#post(`${terminalPath(id)}/execute`, { command });
  }

  async input(id: string, data: string): Promise<void> {
    await this.#post(`${terminalPath(id)}/input`, { data });
  }

  async resize(id: string, { rows, cols }: TerminalSize): Promise<void> {
    await this.#requests.json(terminalPath(id), { method: "PATCH", json: { rows, cols } });
  }

  async closeTerminal(id: string): Promise<void> {
    await this.#requests.json(terminalPath(id), { method: "DELETE" });
  }

  #post(path: string, json: unknown): Promise<unknown> {
    return this.#requests.json(path, { method: "POST", json });
  }
}

function toAgentBody(request: Omit<SidecarAgentRequest, "signal">): object {
  const { message, identifier, sessionId, model, maxTurns = 0, context, timeoutMs } = request;
  const turns = maxTurns > 0 ? { maxTurns, maxSteps: maxTurns } : {};
  const metadata = { ...context, ...turns };
  return {
    identifier: identifier || "default",
    message,
    ...(sessionId ? { sessionId } : {}),
    ...(model ? { backend: { model } } : {}),
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
    ...timeout(timeoutMs),
  };
}

function timeout(timeoutMs: number | undefined): { timeout?: number } {
  return timeoutMs === undefined || timeoutMs === 0 ? {} : { timeout: timeoutMs };
}

function dataOf<Data>(answer: unknown): Data {
  return object(answer)["data"] as Data;
}

function terminalPath(id: string): string {
  return `/terminals/${encodeURIComponent(id)}`;
}
