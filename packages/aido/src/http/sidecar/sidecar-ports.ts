import type { IncomingMessage } from "node:http";
import { isAidoError } from "@aido/sdk/protocol";
import type { Hono } from "hono";
import type { OwnPorts } from "../../core/access/public-address.ts";
import type { Logger } from "../../core/logger.ts";
import { type RunningServer, startServer } from "../server.ts";

export interface SidecarPortsOptions {
  app: Hono;
  /** The first that is tried; 0 takes whichever is free. */
  firstPort: number;
  /** Sandboxes that are to have a port. */
  wanted: () => Promise<readonly string[]>;
  logger: Logger;
  drainMs: number;
}

const HOST = "127.0.0.1";
const TRIES = 1000;
/** Sandboxes that other processes make or destroy are noticed this much later at the most. */
const LOOK_EVERY_MS = 30_000;

/** A port of its own for each sandbox's sidecar API, on loopback. The rest of the server is not to be had there. */
export class SidecarPorts implements OwnPorts {
  readonly #options: SidecarPortsOptions;
  readonly #open = new Map<string, Promise<RunningServer | undefined>>();
  readonly #ports = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: SidecarPortsOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    await this.#look();
    this.#timer = setInterval(() => void this.#look(), LOOK_EVERY_MS);
    this.#timer.unref();
  }

  portOf(sandboxId: string): number | undefined {
    return this.#ports.get(sandboxId);
  }

  async open(sandboxId: string): Promise<void> {
    const opening = this.#open.get(sandboxId) ?? this.#listen(sandboxId);
    this.#open.set(sandboxId, opening);
    if ((await opening) === undefined) this.#open.delete(sandboxId);
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all([...this.#open.keys()].map((sandboxId) => this.#shut(sandboxId)));
  }

  async #look(): Promise<void> {
    try {
      // Taken first: a sandbox that is made meanwhile is not in the list, and keeps its port all the same.
      const before = [...this.#open.keys()];
      const wanted = new Set(await this.#options.wanted());
      for (const sandboxId of wanted) await this.open(sandboxId);
      for (const sandboxId of before) if (!wanted.has(sandboxId)) await this.#shut(sandboxId);
    } catch (thrown) {
      this.#options.logger.warn({ event: "sidecar.ports", error: String(thrown) }, "ports not looked at");
    }
  }

  async #shut(sandboxId: string): Promise<void> {
    const server = await this.#open.get(sandboxId);
    this.#open.delete(sandboxId);
    this.#ports.delete(sandboxId);
    await server?.drain();
  }

  async #listen(sandboxId: string): Promise<RunningServer | undefined> {
    const { app, firstPort, logger, drainMs } = this.#options;
    const taken = new Set(this.#ports.values());
    let failure: string | undefined;
    for (let port = firstPort; port < firstPort + TRIES && port <= 65_535; port += 1) {
      if (port !== 0 && taken.has(port)) continue;
      try {
        const server = await startServer({
          app,
          host: HOST,
          port,
          intercept: (request) => {
            request.url = beneath(sandboxId, request);
            return false;
          },
          upgrade: { handle: (_, socket) => socket.destroy(), close: () => undefined },
          logger,
          drainMs,
        });
        this.#ports.set(sandboxId, Number(new URL(server.url).port));
        return server;
      } catch (thrown) {
        failure = String(thrown);
        if (!isTaken(thrown)) break;
      }
    }
    // The sandbox is there and has its place below the server's own address, so this is no failure of it.
    const fields = { event: "sidecar.ports", sandboxId, firstPort, error: failure };
    logger.warn(fields, "no port of its own could be given; the server's is used");
    return undefined;
  }
}

/** Dots are taken out of the path first: nothing that is asked here can lead to another sandbox or the API. */
function beneath(sandboxId: string, request: IncomingMessage): string {
  const url = new URL(`http://own${request.url?.startsWith("/") === true ? request.url : "/"}`);
  const own = `/sidecar/${sandboxId}`;
  const isWhole = url.pathname === own || url.pathname.startsWith(`${own}/`);
  return `${isWhole ? "" : own}${url.pathname}${url.search}`;
}

function isTaken(thrown: unknown): boolean {
  const cause = isAidoError(thrown) ? (thrown.cause as NodeJS.ErrnoException | undefined) : undefined;
  return cause?.code === "EADDRINUSE" || cause?.code === "EACCES";
}
