import { setMaxListeners } from "node:events";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Execs } from "@aido/sdk";
import type { AuthContext, Connection, ServerChannel } from "ssh2";
import type { Logger } from "../core/logger.ts";
import type { SshKeyName } from "../core/ssh/ssh-key-store.ts";
import type { SshService } from "../core/ssh/ssh-service.ts";
import { Outflow } from "./outflow.ts";
import { forwardPort } from "./port-channel.ts";
import { SessionChannel, type SessionUse } from "./session-channel.ts";
import type { SshLibrary } from "./ssh-library.ts";
import { verifyLogin } from "./verify-login.ts";

/** From the first byte to a login. */
const LOGIN_LIMIT_MS = 30_000;
const MAX_FAILED_LOGINS = 6;
const MAX_LOGIN_REQUESTS = 20;
/** Without a channel nothing can be done, or seen to be done. */
const IDLE_LIMIT_MS = 5 * 60_000;
const MAX_CHANNELS = 32;
/** The library keeps what a session was that was closed before anything was asked of it. */
const MAX_UNUSED_SESSIONS = 100;
/** More than a client that keeps to its window can have on the way. */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024;
const MAX_UNSENT_BYTES = 16 * 1024 * 1024;

export interface ConnectionDeps {
  readonly library: SshLibrary;
  readonly ssh: SshService;
  readonly execs: Execs;
  dial(sandboxId: string, port: number, signal: AbortSignal): Promise<Duplex>;
  /** The sandbox is in use until what is returned is disposed. */
  hold(sandboxId: string): Disposable;
  /** Told of each login and of what is begun with it. */
  onUse(use: SshUse): void;
  readonly logger: Logger;
}

export interface SshUse {
  readonly key: SshKeyName;
  readonly operation: "sshLogin" | "sshForward" | SessionUse;
}

/** One client, from its first byte on. Logs in by key alone, and ends when that key is revoked. */
export class SshConnection {
  readonly address: string;
  readonly #deps: ConnectionDeps;
  readonly #socket: Socket;
  readonly #ending = new AbortController();
  readonly #channels = new Set<{ unreadBytes(): number }>();
  #client: Connection | undefined;
  #key: SshKeyName | undefined;
  #timer: NodeJS.Timeout;
  #failedLogins = 0;
  #loginRequests = 0;
  #unusedSessions = 0;
  #use: Disposable | undefined;

  constructor(deps: ConnectionDeps, socket: Socket) {
    this.#deps = deps;
    this.#socket = socket;
    this.address = socket.remoteAddress ?? "";
    // Each of its channels listens.
    setMaxListeners(0, this.#ending.signal);
    this.#timer = setTimeout(() => socket.destroy(), LOGIN_LIMIT_MS);
    socket.on("data", () => this.#checkMemory());
    socket.once("close", () => this.#closed());
  }

  get isLoggedIn(): boolean {
    return this.#key !== undefined;
  }

  /** The client has said which protocol it speaks. */
  greet(client: Connection): void {
    this.#client = client;
    // Whatever a client does wrong is its own loss: the library has closed the connection.
    client.on("error", () => this.#socket.destroy());
    client.on("authentication", (context) => {
      this.#logIn(context).catch(() => this.end());
    });
    client.on("session", (accept, reject) => {
      if (this.#channels.size >= MAX_CHANNELS || this.#key === undefined) return reject();
      this.#open(new SessionChannel(this.#channelDeps(this.#key), accept()));
    });
    client.on("tcpip", (accept, reject, info) => {
      if (this.#channels.size >= MAX_CHANNELS || this.#key === undefined) return reject();
      const { sandboxId } = this.#key;
      this.#deps.onUse({ key: this.#key, operation: "sshForward" });
      const isOpen = { unreadBytes: () => stream?.readableLength ?? 0 };
      let stream: ServerChannel | undefined;
      this.#channels.add(isOpen);
      forwardPort(info, {
        dial: (port) => this.#deps.dial(sandboxId, port, this.#ending.signal),
        accept: () => {
          stream = accept();
          return stream;
        },
        reject,
      })
        .catch(() => undefined)
        .finally(() => this.#left(isOpen));
    });
  }

  /** Ends it when its key is no longer good, by whomever it was revoked. */
  async recheck(): Promise<void> {
    if (this.#key === undefined) return;
    const isAllowed = await this.#deps.ssh.isAllowed(this.#key).catch(() => true);
    if (!isAllowed) this.end();
  }

  endIfMadeWith(key: SshKeyName): void {
    const own = this.#key;
    if (own?.sandboxId !== key.sandboxId) return;
    if (own.username === key.username && own.fingerprint === key.fingerprint) this.end();
  }

  end(): void {
    this.#client?.end();
    this.#socket.destroy();
  }

  async #logIn(context: AuthContext): Promise<void> {
    this.#loginRequests += 1;
    if (this.#loginRequests > MAX_LOGIN_REQUESTS) return this.end();
    if (context.method !== "publickey") return context.reject(["publickey"]);
    const verdict = await verifyLogin(this.#deps, context);
    if (verdict === undefined) {
      this.#failedLogins += 1;
      if (this.#failedLogins >= MAX_FAILED_LOGINS) return this.end();
      return context.reject(["publickey"]);
    }
    if (verdict.isProven && !this.#ending.signal.aborted) this.#loggedIn(verdict.key);
    context.accept();
  }

  #loggedIn(key: SshKeyName): void {
    this.#key = key;
    this.#use = this.#deps.hold(key.sandboxId);
    this.#watchIdle();
    this.#deps.onUse({ key, operation: "sshLogin" });
    this.#deps.logger.info(
      { event: "ssh.login", sandboxId: key.sandboxId, fingerprint: key.fingerprint, address: this.address },
      "SSH login",
    );
    void this.#deps.ssh.tell(key, "ssh.login", { address: this.address });
  }

  #channelDeps(key: SshKeyName) {
    return {
      ssh: this.#deps.ssh,
      execs: this.#deps.execs,
      key,
      library: this.#deps.library,
      outflow: new Outflow(this.#socket, this.#ending.signal),
      signal: this.#ending.signal,
      overrun: () => this.end(),
      onUse: (operation: SessionUse) => this.#deps.onUse({ key, operation }),
    };
  }

  #open(channel: SessionChannel): void {
    this.#channels.add(channel);
    this.#watchIdle();
    void channel.closed.then((wasUsed) => {
      if (!wasUsed) this.#unusedSessions += 1;
      if (this.#unusedSessions > MAX_UNUSED_SESSIONS) this.end();
      this.#left(channel);
    });
  }

  #left(channel: { unreadBytes(): number }): void {
    this.#channels.delete(channel);
    this.#watchIdle();
  }

  #watchIdle(): void {
    clearTimeout(this.#timer);
    if (this.#channels.size > 0 || this.#ending.signal.aborted) return;
    this.#timer = setTimeout(() => this.end(), IDLE_LIMIT_MS);
    this.#timer.unref();
  }

  /** The library trusts clients to keep to the window they were given, and to read what they asked for. */
  #checkMemory(): void {
    const isFlooded = [...this.#channels].some((channel) => channel.unreadBytes() > MAX_UNREAD_BYTES);
    if (isFlooded || this.#socket.writableLength > MAX_UNSENT_BYTES) this.#socket.destroy();
  }

  #closed(): void {
    clearTimeout(this.#timer);
    this.#ending.abort(new Error("The SSH connection has ended"));
    this.#use?.[Symbol.dispose]();
    if (this.#key !== undefined) void this.#deps.ssh.tell(this.#key, "ssh.logout", { address: this.address });
  }
}
