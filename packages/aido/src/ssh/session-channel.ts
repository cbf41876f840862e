import { setMaxListeners } from "node:events";
import type { Execs } from "@aido/sdk";
import type { ExecRequest, TerminalSize } from "@aido/sdk/protocol";
import type { ServerChannel, Session } from "ssh2";
import type { SshKeyName } from "../core/ssh/ssh-key-store.ts";
import type { SshService } from "../core/ssh/ssh-service.ts";
import { CommandChannel } from "./command-channel.ts";
import type { Outflow } from "./outflow.ts";
import { SftpChannel } from "./sftp-channel.ts";
import type { SshLibrary } from "./ssh-library.ts";

const MAX_ENV = 100;
const MAX_ENV_BYTES = 8_192;
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const TERM = /^[A-Za-z0-9+._-]{1,64}$/;
/** The best shell an image has, as a login's; the script is a constant, nothing is put into it. */
const LOGIN_SHELL = [
  "/bin/sh",
  "-c",
  "if command -v bash >/dev/null 2>&1; then exec bash -l; else exec sh -l; fi",
];

export interface SessionDeps {
  readonly ssh: SshService;
  readonly execs: Execs;
  readonly key: SshKeyName;
  readonly library: SshLibrary;
  readonly outflow: Outflow;
  /** Aborted when the connection ends. */
  readonly signal: AbortSignal;
  /** The client has sent more than is kept for it. */
  readonly overrun: () => void;
  readonly onUse: (use: SessionUse) => void;
}

export type SessionUse = "sshExec" | "sshShell" | "sshFiles";

/** One session of a connection: settings first, then a command, a shell or file transfer, once. */
export class SessionChannel {
  /** Resolves when the session has ended; false when nothing was asked of it. */
  readonly closed: Promise<boolean>;
  readonly #deps: SessionDeps;
  readonly #ending = new AbortController();
  readonly #env: Record<string, string> = {};
  #size: TerminalSize | undefined;
  #command: CommandChannel | undefined;
  #isUsed = false;
  #unread: () => number = () => 0;
  #left: (wasUsed: boolean) => void = () => undefined;

  constructor(deps: SessionDeps, session: Session) {
    this.#deps = deps;
    this.closed = new Promise((resolve) => {
      this.#left = resolve;
    });
    setMaxListeners(0, this.#ending.signal);
    const end = () => this.#end();
    deps.signal.addEventListener("abort", end, { once: true });
    void this.closed.then(() => deps.signal.removeEventListener("abort", end));
    session.on("close", end);
    this.#listen(session);
  }

  unreadBytes(): number {
    return this.#unread();
  }

  #listen(session: Session): void {
    session.on("pty", (accept, _reject, info) => {
      this.#size = toSize(info);
      if (TERM.test(info.term ?? "")) this.#env["TERM"] = info.term ?? "";
      accept?.();
    });
    session.on("env", (accept, reject, { key, val }) => {
      const isTaken =
        ENV_NAME.test(key) && val.length <= MAX_ENV_BYTES && Object.keys(this.#env).length < MAX_ENV;
      if (isTaken) this.#env[key] = val;
      (isTaken ? accept : reject)?.();
    });
    session.on("window-change", (accept, _reject, info) => {
      this.#size = toSize(info);
      void this.#command?.resize(this.#size);
      accept?.();
    });
    session.on("signal", (accept, _reject, { name }) => {
      void this.#command?.signal(name);
      accept?.();
    });
    session.on("exec", (accept, _reject, { command }) =>
      this.#run("sshExec", accept(), { argv: ["/bin/sh", "-c", command] }),
    );
    session.on("shell", (accept) => this.#run("sshShell", accept(), { argv: LOGIN_SHELL }));
    session.on("sftp", (accept) => {
      const sftp = accept();
      // Undefined when the session is in use already.
      if (sftp === undefined) return;
      this.#isUsed = true;
      this.#deps.onUse("sshFiles");
      const channel = new SftpChannel(this.#deps, sftp, this.#ending.signal);
      void channel.closed.then(() => this.#end());
    });
  }

  /** Taken at once, so that what the client sends meanwhile is not lost; the command follows. */
  #run(use: SessionUse, channel: ServerChannel | undefined, request: ExecRequest): void {
    if (channel === undefined) return;
    this.#isUsed = true;
    this.#deps.onUse(use);
    this.#unread = () => channel.readableLength;
    this.#command = new CommandChannel(this.#deps, channel, this.#ending.signal);
    const { username } = this.#deps.key;
    const asked = {
      ...request,
      env: this.#env,
      stdin: true,
      ...(username === "" ? {} : { user: username }),
      ...(this.#size === undefined ? {} : { pty: this.#size }),
    };
    void this.#command.run(asked).finally(() => this.#end());
  }

  #end(): void {
    this.#ending.abort(new Error("The SSH session has ended"));
    this.#left(this.#isUsed);
  }
}

function toSize({ rows, cols }: { rows: number; cols: number }): TerminalSize {
  const clamp = (value: number, fallback: number) => (value > 0 && value <= 65_535 ? value : fallback);
  return { rows: clamp(rows, 24), cols: clamp(cols, 80) };
}
