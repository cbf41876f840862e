import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { AidoError, type ExecInfo } from "@aido/sdk/protocol";
import type { AgentProcess } from "../../core/agent/agent-adapter.ts";
import { oneLine } from "../report/fit-text.ts";

const MAX_STDOUT_BYTES = 256 * 1024 * 1024;
const KEPT_STDERR_CHARS = 2_048;
const GRACE_MS = 5_000;
/** What a process leaves behind may hold its output open; after this nobody listens to it. */
const DRAIN_MS = 2_000;

export interface LocalCommand {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** It has said something, whatever it was. */
  readonly onSign: () => void;
  readonly onStderr: (text: string) => void;
}

type Ended = Pick<ExecInfo, "exitCode" | "signal">;

/** A process of an agent beside the adapter, in a group of its own. */
export class LocalProcess implements AgentProcess {
  static readonly #alive = new Set<LocalProcess>();
  readonly stdout: AsyncIterable<Uint8Array>;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #ended: Promise<Ended>;
  #isOver = false;
  #errors = "";

  private constructor(child: ChildProcessWithoutNullStreams, command: LocalCommand) {
    this.#child = child;
    LocalProcess.#alive.add(this);
    this.stdout = this.#read(command);
    child.stdin.on("error", () => undefined);
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      command.onSign();
      command.onStderr(text);
      this.#errors = (this.#errors + text).slice(-KEPT_STDERR_CHARS);
    });
    this.#ended = new Promise((resolve) => {
      child.once("exit", (code, signal) => {
        this.#isOver = true;
        resolve({ exitCode: code ?? undefined, signal: signal ?? undefined });
        this.#endGroup();
      });
    });
  }

  /** Raises AGENT_UNAVAILABLE when there is no such program. */
  static async start(command: LocalCommand): Promise<LocalProcess> {
    const [program = "", ...args] = command.argv;
    const { cwd, env } = command;
    const child = spawn(program, args, { cwd, env, stdio: ["pipe", "pipe", "pipe"], detached: true });
    await new Promise<void>((resolve, reject) => {
      child.once("spawn", resolve);
      child.once("error", (cause) => {
        reject(
          new AidoError("AGENT_UNAVAILABLE", `Cannot start the agent ${program}: ${cause.message}`, {
            cause,
          }),
        );
      });
    });
    child.on("error", () => undefined);
    return new LocalProcess(child, command);
  }

  /** For an end that cannot wait. */
  static killAll(): void {
    for (const process of LocalProcess.#alive) process.#signal("SIGKILL");
  }

  async write(text: string): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#child.stdin.write(text, (error) => (error ? reject(error) : resolve()));
    });
  }

  async closeStdin(): Promise<void> {
    await new Promise<void>((resolve) => this.#child.stdin.end(resolve));
  }

  async ended(): Promise<ExecInfo> {
    // Adapters ask how it ended and nothing else.
    return (await this.#ended) as ExecInfo;
  }

  async succeeded(): Promise<void> {
    const { exitCode, signal } = await this.#ended;
    if (exitCode === 0) return;
    const said = oneLine(this.#errors);
    const how = signal === undefined ? `ended with code ${exitCode}` : `was ended by ${signal}`;
    throw new AidoError("AGENT_FAILED", `The agent ${how}${said === "" ? "" : `: ${said}`}`);
  }

  /** TERM to its group, then KILL. */
  async kill(graceMs = GRACE_MS): Promise<void> {
    if (!this.#isOver) {
      this.#signal("SIGTERM");
      const timer = setTimeout(() => this.#signal("SIGKILL"), graceMs);
      await this.#ended;
      clearTimeout(timer);
    }
    this.#signal("SIGKILL");
  }

  /** What it has left behind: the story is over, and nobody may go on writing to the workspace. */
  #endGroup(): void {
    this.#signal("SIGTERM");
    const hard = setTimeout(() => this.#signal("SIGKILL"), DRAIN_MS / 2);
    const deaf = setTimeout(() => {
      this.#child.stdout.destroy();
      this.#child.stderr.destroy();
    }, DRAIN_MS);
    this.#child.once("close", () => {
      LocalProcess.#alive.delete(this);
      clearTimeout(hard);
      clearTimeout(deaf);
      this.#signal("SIGKILL");
    });
  }

  #signal(signal: "SIGTERM" | "SIGKILL"): void {
    try {
      if (this.#child.pid !== undefined) process.kill(-this.#child.pid, signal);
    } catch {
      // Nobody of the group is left.
    }
  }

  async *#read({ onSign }: LocalCommand): AsyncGenerator<Uint8Array, void, undefined> {
    let bytes = 0;
    try {
      for await (const chunk of this.#child.stdout) {
        onSign();
        bytes += (chunk as Buffer).byteLength;
        if (bytes > MAX_STDOUT_BYTES) {
          throw new AidoError("PAYLOAD_TOO_LARGE", `The agent wrote over ${MAX_STDOUT_BYTES} bytes`);
        }
        yield chunk as Buffer;
      }
    } catch (thrown) {
      // Not listened to any longer because it has ended.
      if ((thrown as NodeJS.ErrnoException).code !== "ERR_STREAM_PREMATURE_CLOSE") throw thrown;
    }
  }
}
