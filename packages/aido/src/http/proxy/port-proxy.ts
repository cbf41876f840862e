import { randomUUID } from "node:crypto";
import type { IncomingMessage, RequestOptions, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream";
import { AidoError, isAidoError } from "@aido/sdk/protocol";
import type { PortTokens } from "../../core/ports/port-tokens.ts";
import { errorReply } from "../error-reply.ts";
import { askInside, isFinal } from "./ask-inside.ts";
import { toClientHeaders, toSandboxHeaders } from "./forward-headers.ts";
import { IdleTimer } from "./idle-timer.ts";
import { passUpgrade } from "./pass-upgrade.ts";
import { type PortAddress, readPortAddress } from "./port-address.ts";

export interface PortProxyOptions {
  dial: (sandboxId: string, port: number, signal: AbortSignal) => Promise<Duplex>;
  tokens: PortTokens;
  isDraining: () => boolean;
  /** Told once per request, when its headers are sent. */
  onReply?: (reply: PortReply) => void;
  /** Without a byte in either direction. */
  idleMs?: number;
  upgradeIdleMs?: number;
}

export interface PortReply {
  status: number;
  durationMs: number;
  code: string | undefined;
  /** Undefined when the address was wrong: it may name anything. */
  port: { sandboxId: string; port: number; isUpgrade: boolean } | undefined;
}

const IDLE_MS = 10 * 60_000;
const UPGRADE_IDLE_MS = 60 * 60_000;
const MAX_REPLY_HEADER_BYTES = 64 * 1024;

/** Requests to ports of sandboxes. Follows no redirect, keeps no body in memory, forwards nothing meant for aido. */
export class PortProxy {
  readonly #options: PortProxyOptions;
  readonly #upgraded = new Set<Duplex>();

  constructor(options: PortProxyOptions) {
    this.#options = options;
  }

  /** False when the request is not for a port. */
  handle(request: IncomingMessage, response: ServerResponse): boolean {
    const address = readPortAddress(request);
    if (address === undefined) return false;
    const started = performance.now();
    const told = (code?: string) =>
      this.#tell(address, { status: response.statusCode, started, code, isUpgrade: false });
    this.#forward(request, response, address).then(
      () => told(),
      (thrown: unknown) => told(fail(response, thrown)),
    );
    return true;
  }

  /** False when the request is not for a port; rejects when it is refused. */
  async upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<boolean> {
    const address = readPortAddress(request);
    if (address === undefined) return false;
    const started = performance.now();
    const told = (status: number, code?: string) =>
      this.#tell(address, { status, started, code, isUpgrade: true });
    try {
      told(await this.#passUpgrade(request, socket, head, address));
    } catch (thrown) {
      const { error, response } = errorReply(thrown, "");
      told(response.status, error.code);
      throw thrown;
    }
    return true;
  }

  async #passUpgrade(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    address: PortAddress,
  ): Promise<number> {
    const gone = new AbortController();
    socket.once("close", () => gone.abort());
    this.#upgraded.add(socket);
    socket.once("close", () => this.#upgraded.delete(socket));
    const options = await this.#connect(request, address, gone.signal);
    return passUpgrade({
      request: {
        ...options,
        headers: [...options.headers, "Connection", "Upgrade", "Upgrade", upgradeOf(request)],
      },
      socket,
      head,
      replyHeaders: (reply) => toClientHeaders(reply, address),
      idleMs: this.#options.upgradeIdleMs ?? UPGRADE_IDLE_MS,
    });
  }

  #tell(
    address: PortAddress,
    outcome: { status: number; started: number; code: string | undefined; isUpgrade: boolean },
  ): void {
    const { sandboxId, port, token } = address;
    const { status, started, code, isUpgrade } = outcome;
    const isOpen = this.#options.tokens.isValid(sandboxId, port, token);
    this.#options.onReply?.({
      status,
      durationMs: performance.now() - started,
      code,
      port: isOpen ? { sandboxId, port, isUpgrade } : undefined,
    });
  }

  /** Connections that were upgraded have no end of their own. */
  close(): void {
    for (const socket of this.#upgraded) socket.destroy();
  }

  /** Resolves when the reply's headers are sent; its body goes on. */
  async #forward(request: IncomingMessage, response: ServerResponse, address: PortAddress): Promise<void> {
    const gone = new AbortController();
    response.once("close", () => gone.abort(new AidoError("CANCELLED", "The client went away")));
    if (address.target === "" || address.target.startsWith("?")) {
      response.writeHead(308, { location: `${address.prefix}/${address.target}` }).end();
      return;
    }
    const options = await this.#connect(request, address, gone.signal);
    const outgoing = askInside({ ...options, headers: [...options.headers, "Connection", "close"] });
    const idle = new IdleTimer(this.#options.idleMs ?? IDLE_MS, () => outgoing.destroy(tooSlow(address)));
    gone.signal.addEventListener("abort", () => outgoing.destroy());
    request.on("data", () => idle.touch());
    const reply = await new Promise<IncomingMessage>((resolve, reject) => {
      outgoing.once("response", (answer) => {
        if (isFinal(answer)) resolve(answer);
        else reject(new Error(`It answered with the status ${answer.statusCode}`));
      });
      // Also one that switches protocols though nobody asked ends without an error.
      outgoing.once("close", () => {
        idle.stop();
        reject(new Error("It hung up before it answered"));
      });
      // Stays for the errors after the answer has begun, which the reply's own end tells.
      outgoing.on("error", reject);
      // A program may answer and hang up before it has read everything; the answer counts.
      pipeline(request, outgoing, () => undefined);
    }).catch((thrown: unknown) => {
      outgoing.destroy();
      throw asProxyError(address, thrown);
    });
    reply.on("data", () => idle.touch());
    reply.pause();
    response.writeHead(reply.statusCode ?? 502, toClientHeaders(reply, address));
    pipeline(reply, response, () => outgoing.destroy());
  }

  async #connect(
    request: IncomingMessage,
    address: PortAddress,
    signal: AbortSignal,
  ): Promise<RequestOptions & { headers: string[] }> {
    const { tokens, dial, isDraining } = this.#options;
    if (isDraining()) throw new AidoError("SHUTTING_DOWN", "The server is shutting down");
    // One answer for every wrong address: it tells nothing about which sandboxes there are.
    if (!tokens.isValid(address.sandboxId, address.port, address.token)) {
      throw new AidoError("RESOURCE_NOT_FOUND", "There is no port at this address", {
        hint: "POST /api/sandbox/<id>/ports/<port> gives the address of a port.",
      });
    }
    const stream = await dial(address.sandboxId, address.port, signal);
    stream.on("error", () => stream.destroy());
    if (signal.aborted) stream.destroy();
    return {
      method: request.method,
      path: address.target,
      headers: toSandboxHeaders(request, address),
      createConnection: () => stream,
      maxHeaderSize: MAX_REPLY_HEADER_BYTES,
      setHost: false,
    };
  }
}

function upgradeOf(request: IncomingMessage): string {
  return request.headers.upgrade ?? "websocket";
}

/** The code that was told. After the headers only the connection's end can say that something failed. */
function fail(response: ServerResponse, thrown: unknown): string {
  const { error, response: reply } = errorReply(thrown, randomUUID());
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return error.code;
  }
  response.writeHead(reply.status, Object.fromEntries(reply.headers));
  void reply.text().then((body) => response.end(body));
  return error.code;
}

function asProxyError(address: PortAddress, thrown: unknown): AidoError {
  if (isAidoError(thrown)) return thrown;
  return new AidoError(
    "PORT_UNREACHABLE",
    `What listens on port ${address.port} of sandbox ${address.sandboxId} gave no HTTP answer`,
    { details: { containerId: address.sandboxId, port: address.port }, cause: thrown },
  );
}

function tooSlow(address: PortAddress): AidoError {
  return new AidoError("DEADLINE_EXCEEDED", `Port ${address.port} of the sandbox did not answer in time`, {
    details: { containerId: address.sandboxId, port: address.port },
  });
}
