import type { UnchainedEntry } from "./evidence-file.ts";

/** Of one sandbox, when nothing can be written: a full disk must not become full memory. */
const MAX_KEPT_BYTES = 1024 ** 2;

/** In this order: what could not be written before, how many were too many to keep, what was told since. */
export interface Unwritten {
  readonly kept: readonly UnchainedEntry[];
  readonly lost: number;
  readonly fresh: readonly UnchainedEntry[];
}

const NOTHING: Unwritten = { kept: [], lost: 0, fresh: [] };

/** What is told and not written yet, by sandbox. */
export class UnwrittenEntries {
  readonly #waiting = new Map<string, Unwritten & { fresh: UnchainedEntry[] }>();

  get sandboxIds(): readonly string[] {
    return [...this.#waiting.keys()];
  }

  count(sandboxId: string): number {
    const { kept, lost, fresh } = this.#waiting.get(sandboxId) ?? NOTHING;
    return kept.length + lost + fresh.length;
  }

  add(sandboxId: string, entry: UnchainedEntry): void {
    const waiting = this.#waiting.get(sandboxId);
    if (waiting === undefined) this.#waiting.set(sandboxId, { ...NOTHING, fresh: [entry] });
    else waiting.fresh.push(entry);
  }

  /** To be written, or given back. */
  take(sandboxId: string): Unwritten | undefined {
    const waiting = this.#waiting.get(sandboxId);
    this.#waiting.delete(sandboxId);
    return waiting;
  }

  /** Answers how many of them were too many to keep. */
  giveBack(sandboxId: string, failed: Unwritten): number {
    const since = this.#waiting.get(sandboxId) ?? NOTHING;
    const all = [...failed.kept, ...failed.fresh, ...since.kept];
    // Nothing is kept behind a gap, so that it is one gap.
    const kept = failed.lost > 0 ? failed.kept : all.slice(0, fitting(all));
    const dropped = all.length - kept.length;
    const lost = failed.lost + dropped + since.lost;
    this.#waiting.set(sandboxId, { kept, lost, fresh: [...since.fresh] });
    return dropped;
  }
}

function fitting(entries: readonly UnchainedEntry[]): number {
  let bytes = 0;
  const tooMuch = entries.findIndex((entry) => {
    bytes += JSON.stringify(entry).length;
    return bytes > MAX_KEPT_BYTES;
  });
  return tooMuch < 0 ? entries.length : tooMuch;
}
