import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Driver } from "../core/driver/driver.ts";

/** Whoever asks may be anybody: looking costs a write, so one look serves all who ask within this time. */
const FRESH_MS = 1_000;
const DRIVER_LIMIT_MS = 5_000;
const PROBE_BYTES = 4_096;

export interface ReadinessDeps {
  driver: Pick<Driver, "name" | "capabilities">;
  /** Raises unless it can be written to now. */
  store: { probe(): void };
  dataDir: string;
  now?: () => number;
}

/** What a server needs to do its work, asked for by doing some: names of what fails. */
export class Readiness {
  readonly #deps: ReadinessDeps;
  readonly #now: () => number;
  #looking: Promise<readonly string[]> | undefined;
  #lookedAt = 0;

  constructor(deps: ReadinessDeps) {
    this.#deps = deps;
    this.#now = deps.now ?? (() => performance.now());
  }

  failing(): Promise<readonly string[]> {
    if (this.#looking !== undefined && this.#now() - this.#lookedAt < FRESH_MS) return this.#looking;
    this.#lookedAt = this.#now();
    this.#looking = this.#look();
    return this.#looking;
  }

  async #look(): Promise<readonly string[]> {
    const { driver, store, dataDir } = this.#deps;
    const names: string[] = [];
    const ask = async (name: string, question: () => Promise<unknown>): Promise<void> => {
      await question().catch(() => names.push(name));
    };
    await Promise.all([
      ask(`driver ${driver.name}`, () => driver.capabilities(AbortSignal.timeout(DRIVER_LIMIT_MS))),
      ask("store", async () => store.probe()),
      ask("disk", () => probeDisk(dataDir)),
    ]);
    return names;
  }
}

/** The output of commands is written there. */
async function probeDisk(directory: string): Promise<void> {
  const file = join(directory, `.ready-${process.pid}`);
  try {
    await writeFile(file, Buffer.alloc(PROBE_BYTES), { mode: 0o600 });
  } finally {
    await rm(file, { force: true });
  }
}
