import type { Clock } from "../../clock.ts";
import type { Workers } from "../workers/workers.ts";

/** Beyond the grace, for the engine to do what it is told. */
const LIMIT_MS = 30_000;

/** Asks a worker to end, again when the engine did not take it, and knows when it has had its time. */
export class WorkerStop {
  readonly #call: () => Promise<void>;
  readonly #clock: Clock;
  readonly #limitMs: number;
  #askedAt: number | undefined;
  #isTaken = false;

  constructor(
    workers: Pick<Workers, "stop">,
    clock: Clock,
    { name, graceMs }: { name: string; graceMs: number },
  ) {
    this.#call = () => workers.stop(name, graceMs);
    this.#clock = clock;
    this.#limitMs = graceMs + LIMIT_MS;
  }

  get isAsked(): boolean {
    return this.#askedAt !== undefined;
  }

  ask(): void {
    this.#askedAt ??= this.#clock.now().getTime();
    this.#isTaken = true;
    this.#call().catch(() => {
      this.#isTaken = false;
    });
  }

  /** True when it should have ended by now. */
  insist(): boolean {
    if (!this.#isTaken) this.ask();
    return this.#clock.now().getTime() - (this.#askedAt ?? 0) >= this.#limitMs;
  }
}
