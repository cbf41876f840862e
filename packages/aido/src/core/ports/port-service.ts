import type { Duplex } from "node:stream";
import { AidoError, isAidoError } from "@aido/sdk/protocol";
import type { Activity } from "../activity/activity.ts";
import type { Clock } from "../clock.ts";
import type { SandboxResolver } from "../sandbox/sandbox-resolver.ts";
import type { Supervisors } from "../supervisor/supervisors.ts";
import { withTimeLimit } from "../supervisor/time-limit.ts";
import { DialedStream } from "./dialed-stream.ts";

const DIAL_LIMIT_MS = 10_000;
/** A supervisor runs 256 things at once; connections leave room for commands. */
const MAX_OPEN = 128;
const PASSED_ON = ["CONTAINER_LOST", "RUNTIME_UNAVAILABLE", "CANCELLED", "DEADLINE_EXCEEDED"] as const;

export interface PortServiceOptions {
  readonly sandboxes: SandboxResolver;
  readonly supervisors: Supervisors;
  readonly activity: Activity;
  readonly clock: Clock;
}

/** Connections to what listens inside sandboxes. They go through the supervisor, so a sandbox without network has ports too. */
export class PortService {
  readonly #options: PortServiceOptions;
  readonly #open = new Map<string, number>();

  constructor(options: PortServiceOptions) {
    this.#options = options;
  }

  /** Raises PORT_UNREACHABLE when nothing listens. The id must be whole: what it stands for must never be guessed. */
  async dial(sandboxId: string, port: number, signal?: AbortSignal): Promise<Duplex> {
    checkPort(port);
    const record = await this.#options.sandboxes.resolveRunning(sandboxId, { signal });
    if (record.id !== sandboxId) {
      throw new AidoError("CONTAINER_NOT_FOUND", `Sandbox ${sandboxId} does not exist`);
    }
    const open = this.#open.get(record.id) ?? 0;
    if (open >= MAX_OPEN) {
      throw new AidoError(
        "RATE_LIMITED",
        `Sandbox ${record.id} has ${open} open connections, which is the most`,
        {
          hint: "Close some of them.",
        },
      );
    }
    const stream = new DialedStream(this.#options.supervisors.get(record), port);
    this.#open.set(record.id, open + 1);
    const use = this.#options.activity.begin(record.id, "connection");
    stream.once("close", () => {
      use[Symbol.dispose]();
      this.#closed(record.id);
    });
    const what = `Connecting to port ${port} of sandbox ${record.id}`;
    try {
      const limit = { clock: this.#options.clock, limitMs: DIAL_LIMIT_MS, what, signal };
      await withTimeLimit(limit, () => stream.connected());
      return stream;
    } catch (thrown) {
      stream.destroy();
      if (signal?.aborted === true || PASSED_ON.some((code) => isAidoError(thrown, code))) throw thrown;
      throw unreachable(record.id, port, thrown);
    }
  }

  #closed(id: string): void {
    const left = (this.#open.get(id) ?? 1) - 1;
    if (left === 0) this.#open.delete(id);
    else this.#open.set(id, left);
  }
}

export function checkPort(port: number): void {
  if (Number.isInteger(port) && port >= 1 && port <= 65_535) return;
  throw new AidoError("VALIDATION_ERROR", `${port} is not a port: choose 1 to 65535`, {
    details: { field: "port" },
  });
}

function unreachable(sandboxId: string, port: number, cause: unknown): AidoError {
  return new AidoError("PORT_UNREACHABLE", `Nothing answers on port ${port} of sandbox ${sandboxId}`, {
    hint: "Start a program that listens there, on 127.0.0.1 or on all addresses.",
    details: { containerId: sandboxId, port },
    cause,
  });
}
