import { isAidoError } from "@aido/sdk/protocol";
import { ownerOf } from "../access/owner-label.ts";
import type { SandboxRecord } from "../store/store.ts";

const MOST = 3;

/** During one look: whose uploads took too long so often that no more of them are tried. Nobody waits for them twice. */
export class SlowOwners {
  readonly #counts = new Map<string, number>();

  note(record: SandboxRecord, thrown: unknown): void {
    if (!isAidoError(thrown, "DEADLINE_EXCEEDED")) return;
    const key = keyOf(record);
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
  }

  has(record: SandboxRecord): boolean {
    return (this.#counts.get(keyOf(record)) ?? 0) >= MOST;
  }
}

/** The operator's place is one, whoever's files go there. */
function keyOf({ snapshotDestination, labels }: SandboxRecord): string {
  return snapshotDestination === undefined ? "" : `owner ${ownerOf(labels)}`;
}
