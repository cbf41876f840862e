import { createHash } from "node:crypto";
import type { EvidenceEntry } from "@aido/sdk/protocol";

/** What the first entry names as the hash before it. */
export const GENESIS = "0".repeat(64);
const MAX_TEXT = 4096;
const MAX_LIST = 256;

/** An entry as the line that is written; keys in a fixed order, so that equal entries are equal bytes. */
export function toLine(entry: EvidenceEntry): string {
  return `${JSON.stringify({ ...body(entry), hash: entry.hash })}\n`;
}

/** Covers the hash before it and everything of the entry but the hash itself. */
export function hashOf(entry: Omit<EvidenceEntry, "hash">): string {
  return createHash("sha256")
    .update(`${entry.prev}\n${JSON.stringify(body(entry))}`)
    .digest("hex");
}

/** Undefined unless the line has an entry's shape; whether it belongs where it stands is the verifier's question. */
export function parseLine(line: string): EvidenceEntry | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  const entry = value as Record<string, unknown>;
  const isEntry =
    Number.isSafeInteger(entry["seq"]) &&
    ["timestamp", "event", "actor", "prev", "hash"].every((key) => typeof entry[key] === "string");
  return isEntry ? (value as EvidenceEntry) : undefined;
}

/** Values as JSON keeps them, keys sorted, long texts and lists cut: a detail tells, it does not archive. */
export function canonical(value: unknown): unknown {
  if (typeof value === "string") return cut(value);
  if (typeof value === "bigint") return value.toString();
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) {
    const kept: unknown[] = value.slice(0, MAX_LIST).map((item) => canonical(item) ?? null);
    return value.length > MAX_LIST ? [...kept, `… ${value.length - MAX_LIST} more`] : kept;
  }
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value)
      .filter(([, item]) => item !== undefined && typeof item !== "function")
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, item]) => [key, canonical(item)]);
    return Object.fromEntries(entries);
  }
  return value;
}

function body(entry: Omit<EvidenceEntry, "hash">): object {
  const { seq, timestamp, event, actor, detail, prev } = entry;
  return { seq, timestamp, event, actor, ...(detail === undefined ? {} : { detail }), prev };
}

function cut(text: string): string {
  return text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT)}… ${text.length - MAX_TEXT} more`;
}
