import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { OutputStream } from "@aido/sdk/protocol";
import type { Clock } from "../clock.ts";
import type { ExecRecord, ExecStore } from "../store/store.ts";
import type { FollowedExec } from "./followed-exec.ts";

const FIRST_PAUSE_MS = 20;
const LAST_PAUSE_MS = 250;

/** The size of each stream's file; what was never written has none. */
export async function recordedSizes(directory: string): Promise<Record<OutputStream, number>> {
  const size = async (name: OutputStream) => {
    try {
      return (await stat(join(directory, name))).size;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return 0;
      throw error;
    }
  };
  const [stdout, stderr] = await Promise.all([size("stdout"), size("stderr")]);
  return { stdout, stderr };
}

interface ForeignOptions {
  clock: Clock;
  execs: ExecStore;
  directory: string;
}

/** An exec that another process records: its files and its record are looked at again and again. */
export class ForeignExec implements FollowedExec {
  readonly #options: ForeignOptions;
  #record: ExecRecord;
  #sizes: Record<OutputStream, number>;
  #pauseMs = FIRST_PAUSE_MS;

  private constructor(options: ForeignOptions, record: ExecRecord, sizes: Record<OutputStream, number>) {
    this.#options = options;
    this.#record = record;
    this.#sizes = sizes;
  }

  static async open(options: ForeignOptions, record: ExecRecord): Promise<ForeignExec> {
    return new ForeignExec(options, record, await recordedSizes(options.directory));
  }

  sizes(): Readonly<Record<OutputStream, number>> {
    return this.#sizes;
  }

  record(): ExecRecord {
    if (this.isEnded()) return this.#record;
    return { ...this.#record, stdoutBytes: this.#sizes.stdout, stderrBytes: this.#sizes.stderr };
  }

  isEnded(): boolean {
    return this.#record.status !== "running";
  }

  async change(signal?: AbortSignal): Promise<void> {
    const { clock, execs, directory } = this.#options;
    await clock.sleep(this.#pauseMs, signal);
    const record = await execs.get(this.#record.sandboxId, this.#record.id);
    if (record !== undefined) this.#record = record;
    const sizes = await recordedSizes(directory);
    const isSame = sizes.stdout === this.#sizes.stdout && sizes.stderr === this.#sizes.stderr;
    this.#pauseMs = isSame ? Math.min(this.#pauseMs * 2, LAST_PAUSE_MS) : FIRST_PAUSE_MS;
    this.#sizes = this.isEnded()
      ? { stdout: this.#record.stdoutBytes, stderr: this.#record.stderrBytes }
      : sizes;
  }
}
