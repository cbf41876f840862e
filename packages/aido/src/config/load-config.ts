import { AidoError } from "@aido/sdk/protocol";
import { type Config, toConfig } from "./config.ts";
import { configFiles, readConfigFile } from "./config-file.ts";
import { nearestName } from "./nearest-name.ts";
import { Secret } from "./secret.ts";
import { readSecretFile } from "./secret-file.ts";
import { KEYS, SETTINGS, type Values, variableOf } from "./settings.ts";
import { secret } from "./value-kinds.ts";

export interface ConfigSources {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** As given with `--config`; must exist. */
  readonly configPath?: string | undefined;
  /** Flags by dotted key; undefined ones were not given. */
  readonly flags?: Readonly<Partial<Record<keyof Values, unknown>>> | undefined;
}

export interface LoadedConfig {
  readonly config: Config;
  /** In the order of the reference page; secrets print as hidden. */
  readonly settings: readonly { key: string; value: unknown; source: string }[];
}

/** Defaults, then files, then variables, then flags. Every problem is told at once; none is passed over. */
export function loadConfig(sources: ConfigSources): LoadedConfig {
  const problems: string[] = [];
  const found = new Map<keyof Values, { value: unknown; source: string }>();
  const take: Take = (key, value, source, kind = SETTINGS[key].kind) => {
    const read = kind.read(value);
    if (read !== undefined) found.set(key, { value: read, source });
    else problems.push(`${source}: ${key} must be ${kind.what}, not ${shown(key, value)}`);
  };
  for (const file of configFiles(sources)) {
    for (const [name, value] of readConfigFile(file, problems, isWhole)) {
      const key = KEYS.find((candidate) => candidate === name);
      if (key !== undefined) take(key, value, file.path);
      else problems.push(`${file.path}: there is no setting ${name}${suggestion(name, KEYS)}`);
    }
  }
  readVariables(sources.env, take, problems);
  for (const key of KEYS) {
    const value = sources.flags?.[key];
    if (value !== undefined) take(key, value, "flag");
  }
  if (problems.length > 0) throw invalidConfig(problems);
  const settings = KEYS.map((key) => ({
    key,
    ...(found.get(key) ?? { value: SETTINGS[key].default, source: "default" }),
  }));
  const values = Object.fromEntries(settings.map(({ key, value }) => [key, value])) as unknown as Values;
  return { config: toConfig(values, sources.cwd, (key) => found.has(key)), settings };
}

/** Settings whose value is an object. */
function isWhole(name: string): boolean {
  return KEYS.some((key) => key === name && SETTINGS[key].kind.isObject === true);
}

type Take = (
  key: keyof Values,
  value: unknown,
  source: string,
  kind?: { what: string; read(value: unknown): unknown },
) => void;

function readVariables(env: ConfigSources["env"], take: Take, problems: string[]): void {
  const known = new Set(["AIDO_CONFIG"]);
  for (const key of KEYS) {
    for (const [name, kind] of Object.entries(SETTINGS[key].variables ?? {})) {
      known.add(name);
      if (env[name]) take(key, env[name], name, kind);
    }
    const name = variableOf(key);
    known.add(name);
    const file = env[`${name}_FILE`];
    if (SETTINGS[key].kind === secret) known.add(`${name}_FILE`);
    if (env[name]) take(key, env[name], name);
    else if (SETTINGS[key].kind === secret && file) {
      take(key, readSecretFile(`${name}_FILE`, file, problems), `${name}_FILE`);
    }
  }
  // Other programs may have variables of this prefix; only what looks like a slip is one.
  for (const name of Object.keys(env)) {
    if (!name.startsWith("AIDO_") || known.has(name)) continue;
    const meant = nearestName(
      name.slice("AIDO_".length),
      [...known].map((one) => one.replace(/^AIDO_/, "")),
    );
    if (meant !== undefined) problems.push(`There is no variable ${name}; did you mean AIDO_${meant}?`);
  }
}

function suggestion(name: string, candidates: readonly string[]): string {
  const meant = nearestName(name, candidates);
  return meant === undefined ? "" : `; did you mean ${meant}?`;
}

function shown(key: keyof Values, value: unknown): string {
  // Agents have keys among their variables.
  if (SETTINGS[key].kind === secret || key === "agents" || value instanceof Secret) return "[hidden]";
  return (JSON.stringify(value) ?? String(value)).slice(0, 100);
}

function invalidConfig(problems: readonly string[]): AidoError {
  const message =
    problems.length === 1
      ? `The configuration is not valid. ${problems[0]}`
      : `The configuration has ${problems.length} problems:\n${problems.map((one) => `  ${one}`).join("\n")}`;
  return new AidoError("INVALID_CONFIG", message, {
    hint: "docs/reference/config.md describes every setting; `aido config show` prints the values in use.",
    details: { problems },
  });
}
