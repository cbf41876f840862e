import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { AidoError } from "@aido/sdk/protocol";
import { ALGORITHMS } from "./algorithms.ts";
import { type ConnectionDeps, SshConnection } from "./ssh-connection.ts";

const MAX_CONNECTIONS = 256;
/** That have not logged in. */
const MAX_STRANGERS = 64;
const MAX_STRANGERS_PER_ADDRESS = 16;
const RECHECK_MS = 1_000;
const KEEPALIVE_MS = 15_000;

export interface SshServerOptions extends ConnectionDeps {
  host: string;
  port: number;
  /** Private, in OpenSSH's format. */
  hostKey: string;
}

export interface RunningSshServer {
  readonly host: string;
  readonly port: number;
  /** Ends every connection. */
  close(): Promise<void>;
}

/** Listens for SSH clients. Whatever they send before they have logged in is bounded in time, number and memory. */
export async function startSshServer(options: SshServerOptions): Promise<RunningSshServer> {
  const { library, ssh } = options;
  const connections = new Map<string, SshConnection>();
  const protocol = new library.Server({
    hostKeys: [options.hostKey],
    algorithms: ALGORITHMS,
    ident: "aido",
    keepaliveInterval: KEEPALIVE_MS,
  });
  protocol.on("connection", (client, info) => connections.get(`${info.ip}:${info.port}`)?.greet(client));
  const listener = createServer((socket) => {
    const name = `${socket.remoteAddress}:${socket.remotePort}`;
    socket.on("error", () => undefined);
    if (socket.remoteAddress === undefined || isFull(connections, socket)) {
      socket.destroy();
      return;
    }
    const connection = new SshConnection(options, socket);
    connections.set(name, connection);
    socket.once("close", () => connections.delete(name));
    protocol.injectSocket(socket);
  });
  const stopHearing = ssh.onRemoved((key) => {
    for (const connection of connections.values()) connection.endIfMadeWith(key);
  });
  // Keys are also revoked and sandboxes destroyed by other processes.
  const timer = setInterval(() => {
    for (const connection of connections.values()) void connection.recheck();
  }, RECHECK_MS);
  timer.unref();
  const stop = () => {
    clearInterval(timer);
    stopHearing();
  };
  try {
    await listen(listener, options);
  } catch (thrown) {
    stop();
    throw thrown;
  }
  const { address, port } = listener.address() as AddressInfo;
  return {
    host: address,
    port,
    close: async () => {
      stop();
      const closed = new Promise((resolve) => listener.close(resolve));
      for (const connection of connections.values()) connection.end();
      await closed;
    },
  };
}

function isFull(connections: ReadonlyMap<string, SshConnection>, socket: Socket): boolean {
  const strangers = [...connections.values()].filter((connection) => !connection.isLoggedIn);
  const near = strangers.filter((connection) => connection.address === socket.remoteAddress);
  return (
    connections.size >= MAX_CONNECTIONS ||
    strangers.length >= MAX_STRANGERS ||
    near.length >= MAX_STRANGERS_PER_ADDRESS
  );
}

function listen(listener: Server, { host, port }: SshServerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    listener.once("error", (cause: NodeJS.ErrnoException) => {
      const message = `Cannot listen for SSH on ${host}:${port}: ${cause.code ?? cause.message}`;
      const hint = "Choose another port with --ssh-port; 0 takes a free one.";
      reject(new AidoError("INVALID_CONFIG", message, { hint, cause }));
    });
    listener.listen(port, host, resolve);
  });
}
