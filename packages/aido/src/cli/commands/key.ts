import { AidoError } from "@aido/sdk/protocol";
import {
  type ApiKeyRecord,
  type ApiKeys,
  type KeyLimits,
  SCOPES,
  type Scope,
} from "../../core/access/api-keys.ts";
import type { CliContext } from "../context.ts";
import { parseBytes } from "../options/bytes.ts";
import { parseDuration } from "../options/duration.ts";
import { parseNumber } from "../options/numbers.ts";
import { formatBytes } from "../output/format.ts";
import { printResult } from "../output/print.ts";
import { printable } from "../output/printable.ts";
import { table } from "../output/table.ts";

export interface CreateKeyOptions {
  scope?: string[];
  expires?: string;
  maxSandboxes?: string;
  maxCpus?: string;
  maxMemory?: string;
  rateLimit?: string;
}

const MOST = 1_000_000;

/** Shown once: only its hash is kept. */
export async function createKey(
  context: CliContext,
  name: string,
  options: CreateKeyOptions,
): Promise<number> {
  const scopes = options.scope === undefined ? (["read", "write"] as const) : options.scope.map(toScope);
  const lifeMs = options.expires === undefined ? undefined : parseDuration(options.expires, "--expires");
  const now = context.now();
  const expiresAt = lifeMs === undefined ? undefined : new Date(now.getTime() + lifeMs);
  const { newApiKey } = await import("../../core/access/new-api-key.ts");
  const { key, record } = newApiKey({ name, scopes, now, expiresAt, limits: limitsIn(options) });
  await context.withKeys((keys) => keys.insert(record));
  await printResult(context, { key, ...toJson(record) }, () => `${key}\n`);
  await context.stderr.write("Keep it: it is not shown again. Running servers know it at once.\n");
  return 0;
}

export async function listKeys(context: CliContext): Promise<number> {
  const keys = await context.withKeys((store) => store.list());
  await printResult(context, keys.map(toJson), () => {
    if (keys.length === 0) return "There are no keys. `aido key create <name>` makes one.\n";
    return table(
      keys,
      [
        { title: "ID", value: (key) => key.id },
        { title: "NAME", value: (key) => key.name },
        { title: "SCOPES", value: (key) => key.scopes.join(",") },
        { title: "LIMITS", value: ({ limits }) => shownLimits(limits) },
        { title: "CREATED", value: (key) => key.createdAt.toISOString() },
        { title: "ENDS", value: endOf },
      ],
      context.stdout.columns,
    );
  });
  return 0;
}

export async function revokeKey(context: CliContext, id: string): Promise<number> {
  const found = await context.withKeys((keys: ApiKeys) => keys.revoke(id, context.now()));
  if (!found) {
    throw new AidoError("RESOURCE_NOT_FOUND", `There is no key ${id}`, {
      hint: "`aido key list` shows them.",
    });
  }
  await printResult(context, { id, revoked: true }, () => `Revoked ${printable(id)}\n`);
  return 0;
}

/** Only what is given: for the rest the server's settings hold. */
function limitsIn(options: CreateKeyOptions): KeyLimits {
  const { maxSandboxes, maxCpus, maxMemory, rateLimit } = options;
  const range = { least: 0, most: MOST };
  const whole = { ...range, whole: true };
  return {
    ...(maxSandboxes && { maxSandboxes: parseNumber(maxSandboxes, "--max-sandboxes", whole) }),
    ...(maxCpus && { maxCpus: parseNumber(maxCpus, "--max-cpus", range) }),
    ...(maxMemory && { maxMemoryBytes: maxMemory === "0" ? 0 : parseBytes(maxMemory, "--max-memory") }),
    ...(rateLimit && { rateLimit: parseNumber(rateLimit, "--rate-limit", whole) }),
  };
}

function shownLimits({ maxSandboxes, maxCpus, maxMemoryBytes, rateLimit }: KeyLimits): string {
  const shown = (value: number | undefined, unit: string, text = String(value)) =>
    value === undefined ? [] : [`${value === 0 ? "any" : text} ${unit}`];
  const all = [
    ...shown(maxSandboxes, "sandboxes"),
    ...shown(maxCpus, "cpus"),
    ...shown(maxMemoryBytes, "memory", formatBytes(maxMemoryBytes ?? 0)),
    ...shown(rateLimit, "requests/min"),
  ];
  return all.join(", ") || "-";
}

function endOf(key: ApiKeyRecord): string {
  if (key.revokedAt !== undefined) return "revoked";
  return key.expiresAt?.toISOString() ?? "never";
}

function toScope(word: string): Scope {
  const scope = SCOPES.find((known) => known === word);
  if (scope === undefined) {
    throw new AidoError("VALIDATION_ERROR", `There is no scope ${word}`, {
      hint: `There are ${SCOPES.join(", ")}.`,
    });
  }
  return scope;
}

function toJson({ secretHash: _, ...key }: ApiKeyRecord): object {
  return key;
}
