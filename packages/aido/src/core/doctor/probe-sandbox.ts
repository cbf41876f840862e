import { randomBytes } from "node:crypto";
import { isAidoError } from "@aido/sdk/protocol";
import type { Clock } from "../clock.ts";
import type { Driver } from "../driver/driver.ts";
import { type FileRecord, readRecords } from "../files/record-reader.ts";
import type { Logger } from "../logger.ts";
import { TOKEN_BYTES } from "../supervisor/protocol.ts";
import type { Supervisor } from "../supervisor/supervisor.ts";
import { Supervisors } from "../supervisor/supervisors.ts";

const MIB = 1_048_576;
const WORKDIR = "/work";
const TOOL_LIMIT_MS = 10_000;
const PROGRAM_LIMIT_MS = 3_000;
const MAX_READ_BYTES = 65_536;

export interface ProbeOptions {
  readonly driver: Driver;
  readonly image: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly signal?: AbortSignal | undefined;
}

/**
 * A fresh sandbox that is looked out of. It is asked through the supervisor's own tools, so an image without a shell
 * will do. Disposing removes it.
 */
export class ProbeSandbox implements AsyncDisposable {
  readonly id: string;
  readonly workdir = WORKDIR;
  readonly #options: ProbeOptions;
  readonly #supervisors: Supervisors;
  readonly #supervisor: Supervisor;

  private constructor(options: ProbeOptions) {
    this.id = `doctor-${randomBytes(6).toString("hex")}`;
    this.#options = options;
    this.#supervisors = new Supervisors(options);
    this.#supervisor = this.#supervisors.get({
      id: this.id,
      supervisorToken: randomBytes(TOKEN_BYTES).toString("hex"),
    });
  }

  static async start(options: ProbeOptions): Promise<ProbeSandbox> {
    const sandbox = new ProbeSandbox(options);
    try {
      await sandbox.#start();
      return sandbox;
    } catch (thrown) {
      await sandbox[Symbol.asyncDispose]();
      throw thrown;
    }
  }

  /** The beginning of a file as the sandbox's user sees it, or the error's code. */
  async read(path: string): Promise<{ text: string } | { error: string }> {
    return await this.#told(async (signal) => {
      const tool = this.#supervisor.tool(["read", "/", path, "0", `${MAX_READ_BYTES}`], { signal });
      const chunks: Uint8Array[] = [];
      for await (const chunk of tool.stdout) chunks.push(chunk);
      await tool.done;
      return { text: Buffer.concat(chunks).toString("utf8") };
    });
  }

  async list(path: string): Promise<{ entries: readonly FileRecord[] } | { error: string }> {
    return await this.#records(["list", "/", path, "0"]);
  }

  async stat(path: string): Promise<{ entries: readonly FileRecord[] } | { error: string }> {
    return await this.#records(["stat", "/", path]);
  }

  async write(path: string, text: string): Promise<{ written: true } | { error: string }> {
    return await this.#told(async (signal) => {
      await this.#supervisor.tool(["write", "/", path, "644"], { stdin: Buffer.from(text), signal }).done;
      return { written: true as const };
    });
  }

  /** Runs a program of the image to its end or for some seconds; false when the image has no such program. */
  async run(argv: readonly string[]): Promise<boolean> {
    return await new Promise((resolve, reject) => {
      const id = `probe-${randomBytes(6).toString("hex")}`;
      const ended = () => resolve(true);
      const listener = {
        onOutput: (stream: "stdout" | "stderr", offset: number, data: Buffer) =>
          this.#supervisor.ack(id, stream, offset + data.length),
        onEnd: ended,
        onDetached: ended,
        onLost: reject,
      };
      const spec = {
        ...{ id, argv, env: ["PATH=/usr/local/bin:/usr/bin:/bin"], cwd: "", user: undefined, stdin: false },
        ...{ pty: undefined, timeoutMs: PROGRAM_LIMIT_MS, graceMs: 0, outputLimit: MIB, isTool: false },
      };
      this.#supervisor.startExec(spec, listener, this.#options.signal).catch((thrown: unknown) => {
        if (isAidoError(thrown, "EXECUTION_FAILED")) resolve(false);
        else reject(thrown);
      });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#supervisors.close();
    await this.#options.driver.remove(this.id);
  }

  async #start(): Promise<void> {
    const { driver, image, signal } = this.#options;
    const container = await driver.create(
      {
        sandboxId: this.id,
        name: `aido-${this.id}`,
        image,
        isolation: "container",
        network: "none",
        limits: { cpus: 1, memoryBytes: 64 * MIB, pids: 32, diskBytes: 0, openFiles: 256, outputBytes: 0 },
        user: undefined,
        workdir: WORKDIR,
        env: {},
        mounts: [],
        labels: {},
        privileged: false,
      },
      signal,
    );
    await driver.start(this.id, signal);
    // It ends by itself should this process not live to remove it.
    const deadlineMs = 60_000;
    await this.#supervisor.configure({ deadlineMs, ...container.user, workdir: WORKDIR }, signal);
  }

  async #records(argv: readonly string[]): Promise<{ entries: readonly FileRecord[] } | { error: string }> {
    return await this.#told(async (signal) => {
      const tool = this.#supervisor.tool(argv, { signal });
      const entries: FileRecord[] = [];
      for await (const record of readRecords(tool.stdout)) entries.push(record);
      await tool.done;
      return { entries };
    });
  }

  async #told<Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result | { error: string }> {
    const limit = AbortSignal.timeout(TOOL_LIMIT_MS);
    const { signal } = this.#options;
    try {
      return await work(signal === undefined ? limit : AbortSignal.any([signal, limit]));
    } catch (thrown) {
      signal?.throwIfAborted();
      if (isAidoError(thrown) && thrown.code.startsWith("FILE_")) return { error: thrown.code };
      if (isAidoError(thrown, "INVALID_PATH")) return { error: thrown.code };
      throw thrown;
    }
  }
}
