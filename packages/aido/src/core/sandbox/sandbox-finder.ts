import { AidoError } from "@aido/sdk/protocol";
import { ANONYMOUS, ownerOf } from "../access/owner-label.ts";
import type { Clock } from "../clock.ts";
import type { SandboxRecord, SandboxStore } from "../store/store.ts";
import type { SandboxResolver } from "./sandbox-resolver.ts";

const SHOWN_MATCHES = 5;

export class SandboxFinder implements SandboxResolver {
  readonly #sandboxes: SandboxStore;
  readonly #clock: Clock;

  constructor(sandboxes: SandboxStore, clock: Clock) {
    this.#sandboxes = sandboxes;
    this.#clock = clock;
  }

  async resolve(reference: string, owner?: string): Promise<SandboxRecord> {
    const matches = await this.#sandboxes.find(reference, SHOWN_MATCHES + 1, owner);
    const [first] = matches;
    if (first !== undefined && (matches.length === 1 || isLocal(first, reference))) return first;
    if (first !== undefined) throw ambiguous(reference, matches);
    throw missing(reference, await this.#known(reference, owner));
  }

  /** A cursor: the whole id, also of one that has been destroyed since it was told. */
  async cursor(id: string, owner?: string): Promise<string> {
    if ((await this.#known(id, owner)) !== undefined) return id;
    throw missing(id, undefined);
  }

  async resolveRunning(reference: string): Promise<SandboxRecord> {
    return this.mustRun(await this.resolve(reference));
  }

  /** Raises CONTAINER_EXPIRED when its time is over. */
  mustLive(record: SandboxRecord): SandboxRecord {
    const isOver = record.expiresAt !== undefined && record.expiresAt <= this.#clock.now();
    if (isOver || (record.state !== "running" && record.endReason === "timeout")) throw expired(record);
    return record;
  }

  /** Raises CONTAINER_NOT_RUNNING besides. */
  mustRun(record: SandboxRecord): SandboxRecord {
    if (this.mustLive(record).state === "running") return record;
    const how = record.endReason === undefined ? "" : ` (${record.endReason.replaceAll("_", " ")})`;
    throw new AidoError("CONTAINER_NOT_RUNNING", `Sandbox ${record.id} is ${record.state}${how}`, {
      hint: `Start it with \`aido sandbox start ${record.id}\`.`,
      details: { id: record.id, state: record.state, endReason: record.endReason },
    });
  }

  /** Deleted ones too. */
  async #known(id: string, owner: string | undefined): Promise<SandboxRecord | undefined> {
    const record = await this.#sandboxes.get(id);
    return record === undefined || owner === undefined || ownerOf(record.labels) === owner
      ? record
      : undefined;
  }
}

/** A name of the local user's own stays theirs, whoever else has one that is called so. */
function isLocal({ name, labels }: SandboxRecord, reference: string): boolean {
  return name === reference && ownerOf(labels) === ANONYMOUS;
}

function ambiguous(reference: string, matches: readonly SandboxRecord[]): AidoError {
  const ids = matches.slice(0, SHOWN_MATCHES).map((record) => record.id);
  const more = matches.length > SHOWN_MATCHES ? ", …" : "";
  const isName = matches[0]?.name === reference;
  const what = isName ? "the name of sandboxes of several owners" : "the beginning of several sandboxes";
  return new AidoError("CONTAINER_AMBIGUOUS", `${shown(reference)} is ${what}: ${ids.join(", ")}${more}`, {
    hint: isName ? "Use the id." : "Type more of the id.",
    details: { matches: ids },
  });
}

function missing(reference: string, deleted: SandboxRecord | undefined): AidoError {
  if (deleted?.endReason === "timeout") return expired(deleted);
  const what = deleted === undefined ? "does not exist" : "has been destroyed";
  return new AidoError("CONTAINER_NOT_FOUND", `Sandbox ${shown(reference)} ${what}`, {
    hint: "`aido sandbox list` shows the sandboxes there are.",
    details: { sandbox: reference.slice(0, 100) },
  });
}

function expired(record: SandboxRecord): AidoError {
  return new AidoError("CONTAINER_EXPIRED", `Sandbox ${record.id} has reached the end of its ttl`, {
    hint: "Make a new one, with a longer ttl if it needs more time.",
    details: { id: record.id, ttlMs: record.ttlMs },
  });
}

function shown(reference: string): string {
  return /^[A-Za-z0-9_.-]{1,80}$/.test(reference) ? reference : JSON.stringify(reference.slice(0, 80));
}
