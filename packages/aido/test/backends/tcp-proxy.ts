import { connect, createServer, type NetConnectOpts, type Socket } from "node:net";

/** Passes bytes between a port of its own on 127.0.0.1 and a target; can cut what it carries. */
export class TcpProxy implements AsyncDisposable {
  readonly #server = createServer((client) => this.#carry(client));
  readonly #sockets = new Set<Socket>();
  readonly #clients = new Set<Socket>();
  readonly #target: NetConnectOpts;
  /** Bytes that one connection may bring back before it is cut; undefined is all. */
  cutAfterBytes: number | undefined;
  /** New connections are cut at once. */
  isRefusing = false;
  /** Told of what clients send, after it was passed on. */
  onSent: (chunk: Buffer) => void = () => undefined;
  /** Bytes that one connection may bring back before it falls silent; undefined is all. */
  holdAfterBytes: number | undefined;
  /** Resolves when a connection has fallen silent. */
  readonly held: Promise<void>;
  #tellHeld: () => void = () => undefined;

  private constructor(target: NetConnectOpts) {
    this.#target = target;
    this.held = new Promise((resolve) => {
      this.#tellHeld = resolve;
    });
  }

  static async to(target: NetConnectOpts): Promise<TcpProxy> {
    const proxy = new TcpProxy(target);
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once("error", reject);
      proxy.#server.listen(0, "127.0.0.1", resolve);
    });
    return proxy;
  }

  get port(): number {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the proxy does not listen");
    return address.port;
  }

  /** Cuts every open connection, as a cable would. */
  cut(): void {
    for (const client of this.#clients) client.resetAndDestroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #carry(client: Socket): void {
    if (this.isRefusing) {
      client.resetAndDestroy();
      return;
    }
    const target = connect({ ...this.#target, allowHalfOpen: true } as NetConnectOpts);
    let brought = 0;
    this.#clients.add(client);
    client.on("close", () => this.#clients.delete(client));
    for (const [one, other] of [[client, target] as const, [target, client] as const]) {
      this.#sockets.add(one);
      one.on("error", () => other.destroy());
      one.on("close", () => {
        this.#sockets.delete(one);
        other.destroy();
      });
    }
    target.on("data", (chunk) => {
      brought += chunk.length;
      if (this.cutAfterBytes !== undefined && brought > this.cutAfterBytes) {
        client.resetAndDestroy();
        return;
      }
      if (this.holdAfterBytes !== undefined && brought > this.holdAfterBytes) {
        target.pause();
        this.#tellHeld();
      } else if (!client.write(chunk)) {
        target.pause();
        client.once("drain", () => target.resume());
      }
    });
    target.on("end", () => client.end());
    client.pipe(target);
    client.on("data", (chunk) => this.onSent(chunk));
  }
}
