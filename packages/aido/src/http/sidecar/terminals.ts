import { randomBytes } from "node:crypto";
import type { Aido } from "@aido/sdk";
import { AidoError, type ExecInfo, isAidoError, type TerminalSize } from "@aido/sdk/protocol";

export interface NewTerminal {
  name: string;
  shell: string | undefined;
  cwd: string | undefined;
  size: TerminalSize;
  env: Readonly<Record<string, string>>;
}

export interface Terminal {
  readonly exec: ExecInfo;
  readonly name: string;
  readonly shell: string;
}

const ID = /^term_[0-9a-f]{16}$/;
/** The name is an argument of its own: it is kept with the command, and nothing is put into the script. */
const START = ["/bin/sh", "-c", 'exec "$1"'];
const SHELLS = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"];
const PLAIN_SHELL = "/bin/sh";
/** An interactive shell ignores TERM, so this is what closing one takes. */
const CLOSE_GRACE_MS = 200;
const CLOSE_LIMIT_MS = 10_000;
/** A program that does not read makes whoever writes to it wait; not for ever. */
const WRITE_LIMIT_MS = 30_000;

/**
 * Terminals of sandboxes. Each is a command on a PTY like any other, which is all there is to remember: its output is
 * recorded, it goes on without a server, and the next server finds it again.
 */
export class Terminals {
  readonly #aido: Aido;
  readonly #runningExecs: (sandboxId: string) => Promise<readonly string[]>;

  constructor(aido: Aido, runningExecs: (sandboxId: string) => Promise<readonly string[]>) {
    this.#aido = aido;
    this.#runningExecs = runningExecs;
  }

  async open(sandboxId: string, wanted: NewTerminal, signal: AbortSignal): Promise<Terminal> {
    const shell = wanted.shell ?? (await this.#bestShell(sandboxId, signal));
    const exec = await this.#aido.execs.start(
      sandboxId,
      {
        id: `term_${randomBytes(8).toString("hex")}`,
        argv: [...START, wanted.name, shell],
        env: { TERM: "xterm-256color", ...wanted.env },
        cwd: wanted.cwd,
        pty: wanted.size,
        stdin: true,
      },
      signal,
    );
    return { exec, name: wanted.name, shell };
  }

  /** Those that are open, oldest first. */
  async list(sandboxId: string): Promise<readonly Terminal[]> {
    const ids = (await this.#runningExecs(sandboxId)).filter((id) => ID.test(id));
    const execs = await Promise.all(ids.map((id) => this.#aido.execs.get(sandboxId, id)));
    return execs
      .filter(({ status }) => status === "running")
      .map(toTerminal)
      .filter((terminal) => terminal !== undefined)
      .sort((a, b) => a.exec.startedAt.getTime() - b.exec.startedAt.getTime());
  }

  /** One that has ended too, as long as nobody has closed it. Raises TERMINAL_NOT_FOUND. */
  async get(sandboxId: string, id: string): Promise<Terminal> {
    if (!ID.test(id)) throw notFound(id);
    const exec = await this.#aido.execs.get(sandboxId, id).catch((thrown: unknown) => {
      throw isAidoError(thrown, "EXECUTION_NOT_FOUND") ? notFound(id) : thrown;
    });
    const terminal = exec.status === "killed" ? undefined : toTerminal(exec);
    if (terminal === undefined) throw notFound(id);
    return terminal;
  }

  /** Raises TERMINAL_CLOSED when there is nobody to read it. */
  async write(sandboxId: string, id: string, data: Uint8Array, signal: AbortSignal): Promise<void> {
    await this.#open(sandboxId, id);
    const limit = AbortSignal.timeout(WRITE_LIMIT_MS);
    try {
      await this.#aido.execs.writeStdin(sandboxId, id, data, AbortSignal.any([signal, limit]));
    } catch (thrown) {
      if (limit.aborted) throw notReading(thrown);
      throw asClosed(thrown, id);
    }
  }

  async resize(sandboxId: string, id: string, size: TerminalSize): Promise<void> {
    await this.#open(sandboxId, id);
    await this.#aido.execs.resize(sandboxId, id, size).catch((thrown: unknown) => {
      throw asClosed(thrown, id);
    });
  }

  /** Ends the shell and all it has started; resolves when they are gone. */
  async close(sandboxId: string, id: string, signal: AbortSignal): Promise<void> {
    const { exec } = await this.get(sandboxId, id);
    if (exec.status !== "running") return;
    await this.#aido.execs.kill(sandboxId, id, { signal: "TERM", graceMs: CLOSE_GRACE_MS });
    const limit = AbortSignal.any([signal, AbortSignal.timeout(CLOSE_LIMIT_MS)]);
    await this.#aido.execs.wait(sandboxId, id, limit);
  }

  async #open(sandboxId: string, id: string): Promise<void> {
    const { exec } = await this.get(sandboxId, id);
    if (exec.status !== "running") throw closed(id);
  }

  async #bestShell(sandboxId: string, signal: AbortSignal): Promise<string> {
    for (const path of SHELLS) {
      const found = await this.#aido.files.stat(sandboxId, path, signal).catch((thrown: unknown) => {
        if (isAidoError(thrown, "FILE_NOT_FOUND")) return undefined;
        throw thrown;
      });
      if (found !== undefined) return path;
    }
    return PLAIN_SHELL;
  }
}

/** Undefined when the command was not started here, whatever its id. */
function toTerminal(exec: ExecInfo): Terminal | undefined {
  const [name, shell] = exec.argv.slice(START.length);
  const isOwn = START.every((word, at) => exec.argv[at] === word);
  return isOwn && name !== undefined && shell !== undefined ? { exec, name, shell } : undefined;
}

function asClosed(thrown: unknown, id: string): unknown {
  const isOver = isAidoError(thrown, "EXECUTION_CONFLICT") || isAidoError(thrown, "EXECUTION_NOT_FOUND");
  return isOver ? closed(id) : thrown;
}

function closed(id: string): AidoError {
  return new AidoError("TERMINAL_CLOSED", `Terminal ${id} has ended`, {
    hint: "POST …/terminals opens a new one; …/stream still has what this one wrote.",
  });
}

function notFound(id: string): AidoError {
  return new AidoError("TERMINAL_NOT_FOUND", `There is no terminal ${JSON.stringify(id.slice(0, 100))}`, {
    hint: "GET …/terminals lists those that are open.",
  });
}

function notReading(cause: unknown): AidoError {
  const text = `The program in the terminal has read nothing for ${WRITE_LIMIT_MS / 1000} s`;
  return new AidoError("DEADLINE_EXCEEDED", text, { cause });
}
