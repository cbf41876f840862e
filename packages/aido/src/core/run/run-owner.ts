import { randomBytes } from "node:crypto";
import {
  closeSync,
  fstatSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { utimes } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../clock.ts";
import type { ProcessIdentity } from "../process-identity.ts";

/** An owner that cannot be asked, one from before a reboot for example, lives as long as it shows signs of life. */
const BEAT_MS = 15_000;
const SILENT_MS = 60_000;

interface Entry {
  number: number;
  name: string;
  beatAt: number;
}

/**
 * Which process sees a run to its end. A directory of numbered files: the highest number counts, and the next
 * can be made by one process only, so a dead owner is followed by exactly one heir.
 */
export class RunOwner {
  readonly #directory: string;
  readonly #identity: ProcessIdentity;
  readonly #clock: Clock;

  constructor(directory: string, identity: ProcessIdentity, clock: Clock) {
    this.#directory = directory;
    this.#identity = identity;
    this.#clock = clock;
  }

  /** The living process that owns the run; undefined when there is none. */
  async holder(): Promise<string | undefined> {
    const last = this.#last();
    return last !== undefined && this.#isAlive(last) ? last.name : undefined;
  }

  async wasTaken(): Promise<boolean> {
    return this.#last() !== undefined;
  }

  /** False when another living process, or this one, has it already. */
  async take(): Promise<boolean> {
    const last = this.#last();
    if (last !== undefined && this.#isAlive(last)) return false;
    return this.#append((last?.number ?? 0) + 1, this.#identity.self);
  }

  /** Only what this process has taken. */
  async release(): Promise<void> {
    const last = this.#last();
    if (last === undefined || last.name !== this.#identity.self) return;
    this.#append(last.number + 1, "");
    this.#forgetBefore(last.number + 1);
  }

  /** Shows signs of life until the signal is aborted. */
  async beat(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#clock.sleep(BEAT_MS, signal);
      } catch {
        return;
      }
      const last = this.#last();
      if (last?.name !== this.#identity.self) return;
      const now = this.#clock.now();
      await utimes(join(this.#directory, String(last.number)), now, now).catch(missing);
    }
  }

  #isAlive(entry: Entry): boolean {
    if (entry.name === "" || this.#identity.isDead(entry.name)) return false;
    if (this.#identity.isAlive(entry.name)) return true;
    return this.#clock.now().getTime() - entry.beatAt < SILENT_MS;
  }

  #last(): Entry | undefined {
    // What is forgotten between the two reads is followed by a higher one; each round sees a later state.
    for (;;) {
      const number = this.#numbers().at(-1);
      if (number === undefined) return undefined;
      const entry = this.#read(number);
      if (entry !== undefined) return entry;
    }
  }

  #read(number: number): Entry | undefined {
    const file = unlessMissing(() => openSync(join(this.#directory, String(number)), "r"));
    if (file === undefined) return undefined;
    try {
      return { number, name: readFileSync(file, "utf8"), beatAt: fstatSync(file).mtimeMs };
    } finally {
      closeSync(file);
    }
  }

  #append(number: number, name: string): boolean {
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
    const temporary = join(this.#directory, `.${randomBytes(6).toString("hex")}`);
    writeFileSync(temporary, name, { flag: "wx", mode: 0o600 });
    try {
      // A link appears complete or not at all, and never replaces.
      linkSync(temporary, join(this.#directory, String(number)));
      return true;
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code === "EEXIST") return false;
      throw thrown;
    } finally {
      rmSync(temporary, { force: true });
    }
  }

  #forgetBefore(number: number): void {
    for (const old of this.#numbers()) {
      if (old < number) rmSync(join(this.#directory, String(old)), { force: true });
    }
  }

  #numbers(): number[] {
    const names = unlessMissing(() => readdirSync(this.#directory)) ?? [];
    return names
      .filter((name) => /^[0-9]+$/.test(name))
      .map(Number)
      .sort((a, b) => a - b);
  }
}

function unlessMissing<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (thrown) {
    return missing(thrown as NodeJS.ErrnoException);
  }
}

function missing(thrown: NodeJS.ErrnoException): undefined {
  if (thrown.code === "ENOENT") return undefined;
  throw thrown;
}
