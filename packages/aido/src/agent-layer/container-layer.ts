import { type Aido, runExec } from "@aido/sdk";
import { isAidoError } from "@aido/sdk/protocol";
import { DOCKER_CONFIG, type DockerConfig, MAX_OUTPUT_CHARS } from "./config.ts";
import { DockerError } from "./docker-error.ts";
import { formatListing } from "./format-listing.ts";
import { truncateOutput } from "./truncate-output.ts";

export interface ExecResult {
  stdout: string;
  stderr: string;
  exitCode: number;
}

export interface ContainerLayerOptions {
  aido: () => Promise<Aido>;
  config?: Partial<DockerConfig>;
  /** Where the layer says what it starts and cleans up. */
  log?: (line: string) => void;
}

const STOP_GRACE_MS = 10_000;
const CONTAINER_ID_CHARS = 12;
/** UTF-8 needs at most four bytes for a character, so nothing that is shown is lost. */
const COLLECT_BYTES = MAX_OUTPUT_CHARS * 4 + 4;

/** Start, exec, files and clean-up of one container per session, on any driver. */
export class ContainerLayer {
  readonly config: DockerConfig;
  readonly #aido: () => Promise<Aido>;
  readonly #log: (line: string) => void;
  /** Short container ids are what callers hold; sandboxes outlive their containers and are named by id. */
  readonly #sandboxIds = new Map<string, string>();

  constructor(options: ContainerLayerOptions) {
    this.config = { ...DOCKER_CONFIG, ...options.config };
    this.#aido = options.aido;
    this.#log = options.log ?? (() => undefined);
  }

  readonly startContainer = async (sessionId: string, signal?: AbortSignal): Promise<string> => {
    const name = `${this.config.containerPrefix}${sessionId}`;
    this.#log(`[Docker] Starting container: ${name}`);
    try {
      const aido = await this.#aido();
      const sandbox = await aido.sandboxes.create(
        {
          name,
          profile: "agent",
          image: this.config.image,
          workdir: this.config.workdir,
          network: this.config.network,
          ttlMs: 0,
        },
        signal === undefined ? {} : { signal },
      );
      const containerId = (sandbox.containerId ?? sandbox.id).slice(0, CONTAINER_ID_CHARS);
      this.#sandboxIds.set(containerId, sandbox.id);
      return containerId;
    } catch (thrown) {
      throw new DockerError(
        `Failed to start container: ${messageOf(thrown).trim()}`,
        "CONTAINER_START_FAILED",
        {
          cause: thrown,
        },
      );
    }
  };

  readonly execInContainer = async (
    containerId: string,
    command: string,
    timeoutMs: number = this.config.commandTimeoutMs,
    signal?: AbortSignal,
  ): Promise<ExecResult> => {
    const result = await this.#exec(containerId, ["sh", "-c", command], timeoutMs, signal);
    if (result.info.status === "timeout") {
      throw new DockerError(`Command timed out after ${timeoutMs} ms and was killed`, "COMMAND_TIMEOUT");
    }
    if (result.info.exitCode === undefined) {
      throw new DockerError("Command failed: its container ended before it did", "EXEC_FAILED");
    }
    return {
      stdout: truncateOutput(Buffer.from(result.stdout).toString("utf8")),
      stderr: truncateOutput(Buffer.from(result.stderr).toString("utf8")),
      exitCode: result.info.exitCode,
    };
  };

  readonly readFileInContainer = (containerId: string, path: string): Promise<ExecResult> =>
    this.#fileResult(async (aido) => {
      const parts: Uint8Array[] = [];
      let length = 0;
      for await (const part of aido.files.read(this.#reference(containerId), relative(path))) {
        parts.push(Uint8Array.from(part));
        length += part.length;
        // The model sees no more than this; leaving the loop ends the transfer.
        if (length > COLLECT_BYTES) break;
      }
      return Buffer.concat(parts).toString("utf8");
    });

  readonly writeFileInContainer = (containerId: string, path: string, content: string): Promise<ExecResult> =>
    this.#fileResult(async (aido) => {
      await aido.files.write(this.#reference(containerId), relative(path), Buffer.from(content, "utf8"));
      return "";
    });

  readonly listDirectoryInContainer = (containerId: string, path = "."): Promise<ExecResult> =>
    this.#fileResult(async (aido) =>
      formatListing(await aido.files.list(this.#reference(containerId), relative(path))),
    );

  /** Never throws. A container that cannot be stopped is removed all the same: nothing else ends it. */
  readonly cleanupContainer = async (containerId: string): Promise<void> => {
    if (containerId === "") return;
    this.#log(`[Docker] Cleaning up: ${containerId}`);
    const sandbox = this.#reference(containerId);
    await this.#cleanup((aido) => aido.sandboxes.stop(sandbox, { graceMs: STOP_GRACE_MS }));
    if (await this.#cleanup((aido) => aido.sandboxes.destroy(sandbox))) this.#sandboxIds.delete(containerId);
  };

  async #cleanup(step: (aido: Aido) => Promise<unknown>): Promise<boolean> {
    try {
      await step(await this.#aido());
      return true;
    } catch (thrown) {
      this.#log(`[Docker] Cleanup failed: ${messageOf(thrown)}`);
      return false;
    }
  }

  async #exec(containerId: string, argv: string[], timeoutMs: number, signal?: AbortSignal) {
    try {
      const aido = await this.#aido();
      return await runExec(
        aido.execs,
        this.#reference(containerId),
        { argv, timeoutMs },
        { maxBytes: COLLECT_BYTES, ...(signal === undefined ? {} : { signal }) },
      );
    } catch (thrown) {
      throw new DockerError(`Command failed: ${messageOf(thrown)}`, "EXEC_FAILED", { cause: thrown });
    }
  }

  /** A file that is missing or refused is a result for the model, as `cat` would give it. */
  async #fileResult(action: (aido: Aido) => Promise<string>): Promise<ExecResult> {
    try {
      return { stdout: truncateOutput(await action(await this.#aido())), stderr: "", exitCode: 0 };
    } catch (thrown) {
      const told =
        isAidoError(thrown) && ["not_found", "forbidden", "invalid", "conflict"].includes(thrown.kind);
      if (
        told &&
        !isAidoError(thrown, "CONTAINER_NOT_FOUND") &&
        !isAidoError(thrown, "CONTAINER_NOT_RUNNING")
      ) {
        return { stdout: "", stderr: truncateOutput(messageOf(thrown)), exitCode: 1 };
      }
      throw new DockerError(`Command failed: ${messageOf(thrown)}`, "EXEC_FAILED", { cause: thrown });
    }
  }

  #reference(containerId: string): string {
    return this.#sandboxIds.get(containerId) ?? containerId;
  }
}

/** Leading slashes mean the workdir, not the container's root; `..` cannot leave it (the supervisor resolves beneath it). */
function relative(path: string): string {
  const clean = path.replace(/^\/+/, "");
  return clean === "" ? "." : clean;
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
