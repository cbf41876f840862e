import { AGENT_KINDS, type AgentKind } from "@aido/sdk/protocol";
import { Secret } from "./secret.ts";
import type { ValueKind } from "./value-kinds.ts";

/** An agent as a person describes it; what is left out has a default of its kind. */
export interface AgentSetting {
  readonly kind: AgentKind;
  readonly argv: readonly (string | readonly string[])[] | undefined;
  /** Often keys, so they are never printed. */
  readonly env: Readonly<Record<string, Secret>>;
  readonly displayName: string | undefined;
  readonly description: string | undefined;
  readonly permissions: "allow" | "deny";
}
export type AgentSettings = Readonly<Record<string, AgentSetting>>;

const IDENTIFIER = /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$/;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;
const FIELDS = new Set(["kind", "argv", "env", "displayName", "description", "permissions"]);

/** In a file as an object, in a variable as its JSON. */
export const agents: ValueKind<AgentSettings> = {
  what: 'an object of agents such as { "mine": { "kind": "command", "argv": ["my-agent"] } }',
  isObject: true,
  read(value) {
    try {
      return readAgents(typeof value === "string" ? JSON.parse(value) : value);
    } catch {
      return undefined;
    }
  },
};

function readAgents(value: unknown): AgentSettings {
  const entries = Object.entries(toObject(value)).map(([identifier, agent]) => {
    if (!IDENTIFIER.test(identifier)) throw new Error("bad identifier");
    return [identifier, readAgent(toObject(agent))];
  });
  return Object.freeze(Object.fromEntries(entries) as Record<string, AgentSetting>);
}

function readAgent(agent: Readonly<Record<string, unknown>>): AgentSetting {
  if (Object.keys(agent).some((field) => !FIELDS.has(field))) throw new Error("unknown field");
  const kind = AGENT_KINDS.find((known) => known === agent["kind"]);
  const permissions = agent["permissions"] ?? "allow";
  if (kind === undefined || (permissions !== "allow" && permissions !== "deny"))
    throw new Error("bad choice");
  const argv = agent["argv"] === undefined ? undefined : readArgv(agent["argv"]);
  if (argv === undefined && kind !== "claude") throw new Error("no command");
  return {
    kind,
    argv,
    env: readEnv(toObject(agent["env"] ?? {})),
    displayName: optionalText(agent["displayName"]),
    description: optionalText(agent["description"]),
    permissions,
  };
}

/** The program itself must be a word: a command that may be left out is none. */
function readArgv(value: unknown): readonly (string | readonly string[])[] {
  const isWord = (word: unknown) => typeof word === "string";
  const isPart = (part: unknown) => isWord(part) || (Array.isArray(part) && part.every(isWord));
  if (!Array.isArray(value) || !isWord(value[0]) || value[0] === "" || !value.every(isPart)) {
    throw new Error("bad argv");
  }
  return value as (string | string[])[];
}

function readEnv(env: Readonly<Record<string, unknown>>): Readonly<Record<string, Secret>> {
  const entries = Object.entries(env).map(([name, value]) => {
    if (!VARIABLE.test(name) || typeof value !== "string") throw new Error("bad variable");
    return [name, new Secret(value)];
  });
  return Object.fromEntries(entries) as Record<string, Secret>;
}

function optionalText(value: unknown): string | undefined {
  if (value === undefined || typeof value === "string") return value;
  throw new Error("no text");
}

function toObject(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("no object");
  return value as Record<string, unknown>;
}
