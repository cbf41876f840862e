import type { CreateSandbox } from "@aido/sdk/protocol";
import type { Container } from "../driver/driver.ts";
import type { SandboxRecord } from "../store/store.ts";

export interface Ready {
  readonly record: SandboxRecord;
  readonly user: Container["user"];
  /** When its supervisor last answered, in milliseconds. */
  seenAt: number;
}

const DEMAND_MS = 60_000;
/** However high the demand, no more than this many times the configured size is kept. */
const MOST = 2;

/** The ready sandboxes of one kind, and how many of them there should be. */
export class Shelf {
  readonly key: string;
  readonly size: number;
  readonly request: CreateSandbox;
  readonly image: string;
  readonly #ready: Ready[] = [];
  /** Times of the last requests, oldest first; never more than can matter. */
  readonly #asked: number[] = [];
  hits = 0;
  misses = 0;

  constructor(options: { key: string; size: number; request: CreateSandbox; image: string }) {
    this.key = options.key;
    this.size = options.size;
    this.request = options.request;
    this.image = options.image;
  }

  get count(): number {
    return this.#ready.length;
  }

  put(ready: Ready): void {
    this.#ready.push(ready);
  }

  /** The one whose supervisor answered most recently. */
  take(): Ready | undefined {
    return this.#ready.pop();
  }

  /** The one that has not been heard of for the longest, if that is before `time`. */
  takeUnseenSince(time: number): Ready | undefined {
    const at = this.#ready.findIndex((ready) => ready.seenAt <= time);
    return at < 0 ? undefined : this.#ready.splice(at, 1)[0];
  }

  takeAll(): Ready[] {
    return this.#ready.splice(0);
  }

  asked(now: number): void {
    this.#asked.push(now);
    if (this.#asked.length > this.size * MOST) this.#asked.shift();
  }

  /** What was asked for within the last minute, but not less than configured and not more than twice that. */
  target(now: number): number {
    while (this.#asked[0] !== undefined && this.#asked[0] <= now - DEMAND_MS) this.#asked.shift();
    return Math.min(this.size * MOST, Math.max(this.size, this.#asked.length));
  }
}
