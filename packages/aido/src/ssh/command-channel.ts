import {
  type AidoError,
  type ExecInfo,
  type ExecRequest,
  type TerminalSize,
  toAidoError,
} from "@aido/sdk/protocol";
import type { ServerChannel } from "ssh2";
import type { SessionDeps } from "./session-channel.ts";

/** The names that RFC 4254 has; others are told as an exit code. */
const SIGNALS = /^(ABRT|ALRM|FPE|HUP|ILL|INT|KILL|PIPE|QUIT|SEGV|TERM|USR1|USR2)$/;
/** As a shell ends that does not find the command, and as ssh ends when it is at fault itself. */
const NOT_FOUND = 127;
const FAILED = 255;
/** What a terminal takes for the end of the input. */
const END_OF_INPUT = Uint8Array.of(4);

/** A command in the sandbox joined to a channel: input, output, signals, size and end. */
export class CommandChannel {
  readonly #deps: SessionDeps;
  readonly #channel: ServerChannel;
  readonly #signal: AbortSignal;
  #exec: ExecInfo | undefined;

  constructor(deps: SessionDeps, channel: ServerChannel, signal: AbortSignal) {
    this.#deps = deps;
    this.#channel = channel;
    this.#signal = signal;
    channel.on("error", () => undefined);
  }

  /** Resolves when the command has ended and the client knows, or when the client has gone. */
  async run(request: ExecRequest): Promise<void> {
    const { execs, key } = this.#deps;
    try {
      if (!(await this.#deps.ssh.isAllowed(key))) return this.#deps.overrun();
      const exec = await execs.start(key.sandboxId, request, this.#signal);
      this.#exec = exec;
      await this.#deps.ssh.tell(key, "ssh.command", { execId: exec.id, terminal: request.pty !== undefined });
      void this.#feed(exec, request.pty !== undefined);
      await this.#follow(exec);
    } catch (thrown) {
      if (this.#signal.aborted) await this.signal("HUP");
      else await this.#refuse(toAidoError(thrown));
    }
  }

  /** What comes when the command has just ended is of no interest. */
  async resize(size: TerminalSize): Promise<void> {
    const { execs, key } = this.#deps;
    if (this.#exec !== undefined) {
      await execs.resize(key.sandboxId, this.#exec.id, size).catch(() => undefined);
    }
  }

  async signal(name: string): Promise<void> {
    const { execs, key } = this.#deps;
    if (this.#exec === undefined || !SIGNALS.test(name)) return;
    await execs.kill(key.sandboxId, this.#exec.id, { signal: `SIG${name}` }).catch(() => undefined);
  }

  async #feed(exec: ExecInfo, isTerminal: boolean): Promise<void> {
    const { execs, key } = this.#deps;
    try {
      // Left open at its end: the command may have much to say after the last of its input.
      for await (const chunk of this.#channel.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        await execs.writeStdin(key.sandboxId, exec.id, chunk, this.#signal);
      }
      if (isTerminal) await execs.writeStdin(key.sandboxId, exec.id, END_OF_INPUT, this.#signal);
      else await execs.closeStdin(key.sandboxId, exec.id, this.#signal);
    } catch {
      // The command no longer reads, or the client has gone; the rest of what it sends is dropped.
      this.#channel.resume();
    }
  }

  async #follow(exec: ExecInfo): Promise<void> {
    const { execs, key, outflow } = this.#deps;
    const channel = this.#channel;
    const output = execs.output(key.sandboxId, exec.id, { follow: true }, this.#signal);
    for await (const { stream, data } of output) {
      await outflow.write(stream === "stderr" ? channel.stderr : channel, data, this.#signal);
    }
    this.#end(await execs.wait(key.sandboxId, exec.id, this.#signal));
  }

  #end(info: ExecInfo): void {
    const name = info.signal?.replace(/^SIG/, "") ?? "";
    if (SIGNALS.test(name)) this.#channel.exit(name, false, "");
    else this.#channel.exit(info.exitCode ?? FAILED);
    this.#channel.end();
  }

  async #refuse(error: AidoError): Promise<void> {
    const text = error.hint === undefined ? error.message : `${error.message}\r\n${error.hint}`;
    const said = error.kind === "internal" ? "aido could not run this" : text;
    const { outflow } = this.#deps;
    await outflow
      .write(this.#channel.stderr, Buffer.from(`aido: ${said}\r\n`), this.#signal)
      .catch(() => undefined);
    this.#channel.exit(error.code === "EXECUTION_FAILED" ? NOT_FOUND : FAILED);
    this.#channel.end();
  }
}
