import type { Execs } from "@aido/sdk";
import { AidoError, type ExecInfo } from "@aido/sdk/protocol";
import type { AgentProcess } from "./agent-adapter.ts";

/** More than any agent has to say in one run; what comes after is not read. */
const MAX_STDOUT_BYTES = 64 * 1024 * 1024;
const MAX_STDERR_BYTES = 64 * 1024 * 1024;
const KEPT_STDERR_BYTES = 2_048;
const KILL_GRACE_MS = 2_000;

/** A process of an agent as an exec of its sandbox. */
export class SandboxProcess implements AgentProcess {
  readonly stdout: AsyncIterable<Uint8Array>;
  readonly #execs: Execs;
  readonly #sandboxId: string;
  readonly #execId: string;
  #errors: Buffer = Buffer.alloc(0);

  constructor(execs: Execs, sandboxId: string, execId: string) {
    this.#execs = execs;
    this.#sandboxId = sandboxId;
    this.#execId = execId;
    this.stdout = this.#read();
  }

  async write(text: string): Promise<void> {
    await this.#execs.writeStdin(this.#sandboxId, this.#execId, Buffer.from(text));
  }

  async closeStdin(): Promise<void> {
    await this.#execs.closeStdin(this.#sandboxId, this.#execId);
  }

  ended(): Promise<ExecInfo> {
    return this.#execs.wait(this.#sandboxId, this.#execId);
  }

  async succeeded(): Promise<void> {
    const info = await this.ended();
    if (info.status !== "exited" || info.exitCode !== 0) throw endedBadly(info, this.#lastErrors());
  }

  async kill(graceMs = KILL_GRACE_MS): Promise<void> {
    await this.#execs.kill(this.#sandboxId, this.#execId, { signal: "TERM", graceMs });
  }

  async *#read(): AsyncGenerator<Uint8Array, void, undefined> {
    const bytes = { stdout: 0, stderr: 0 };
    const limits = { stdout: MAX_STDOUT_BYTES, stderr: MAX_STDERR_BYTES };
    const output = this.#execs.output(this.#sandboxId, this.#execId, { follow: true });
    for await (const { stream, data } of output) {
      bytes[stream] += data.byteLength;
      if (bytes[stream] > limits[stream]) {
        throw new AidoError("PAYLOAD_TOO_LARGE", `The agent wrote over ${limits[stream]} bytes to ${stream}`);
      }
      if (stream === "stdout") yield data;
      else this.#errors = Buffer.concat([this.#errors, data]).subarray(-KEPT_STDERR_BYTES);
    }
  }

  /** On one line and without anything that could act on a terminal. */
  #lastErrors(): string {
    const text = this.#errors.toString("utf8").trim();
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be passed on
    return text.replace(/\u001b\[[0-9;?]*[A-Za-z]/g, "").replace(/[\u0000-\u001f\u007f-\u009f]+/g, " ");
  }
}

function endedBadly(info: ExecInfo, said: string): AidoError {
  const details = { execId: info.id, sandboxId: info.sandboxId, exitCode: info.exitCode };
  const because = said === "" ? "" : `: ${said}`;
  switch (info.status) {
    case "timeout":
      return new AidoError("COMMAND_TIMEOUT", "The agent's time was up", { details });
    case "out_of_memory":
      return new AidoError("OUT_OF_MEMORY", `The agent ran out of memory${because}`, { details });
    case "output_limit":
      return new AidoError("PAYLOAD_TOO_LARGE", "The agent wrote more than the sandbox may", { details });
    case "lost":
      return new AidoError("CONTAINER_LOST", "The sandbox ended while the agent worked", { details });
    case "killed": {
      // Asked to end, by a cancel from elsewhere for example; any other signal is a crash of its own.
      const isAsked = info.signal === undefined || ["SIGTERM", "SIGKILL", "SIGINT"].includes(info.signal);
      const message = `The agent was ended by ${info.signal ?? "a signal"}${because}`;
      return new AidoError(isAsked ? "CANCELLED" : "AGENT_FAILED", message, { details });
    }
    default:
      return new AidoError("AGENT_FAILED", `The agent ended with code ${info.exitCode}${because}`, {
        details,
      });
  }
}
