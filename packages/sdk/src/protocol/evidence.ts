/** One line of a sandbox's events.log. `hash` covers the line without itself and the hash before it. */
export interface EvidenceEntry {
  seq: number;
  timestamp: string;
  event: string;
  /** Who caused it: an operating-system user, an API key's name, or `aido` itself. */
  actor: string;
  detail?: Readonly<Record<string, unknown>>;
  prev: string;
  hash: string;
}

export interface EvidenceProblem {
  line: number;
  problem: "changed" | "removed" | "reordered" | "unreadable" | "truncated" | "unwritten";
  message: string;
}

export interface EvidenceVerdict {
  sandboxId: string;
  entries: number;
  ok: boolean;
  problems: readonly EvidenceProblem[];
}
