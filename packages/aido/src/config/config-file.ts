import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import type { ConfigSources } from "./load-config.ts";

export interface ConfigFile {
  readonly path: string;
  /** Whether somebody named it, so that it must exist. */
  readonly isNamed: boolean;
}

/** Weakest first. */
export function configFiles({ env, cwd, configPath }: ConfigSources): readonly ConfigFile[] {
  const home = env["XDG_CONFIG_HOME"] || join(env["HOME"] || homedir(), ".config");
  const named = configPath ?? env["AIDO_CONFIG"];
  return [
    { path: "/etc/aido/config.json", isNamed: false },
    { path: join(home, "aido", "config.json"), isNamed: false },
    ...(named ? [{ path: resolve(cwd, named), isNamed: true }] : []),
  ];
}

/** Dotted keys and their values; nested objects are joined by dots, unless they are one value. */
export function readConfigFile(
  file: ConfigFile,
  problems: string[],
  isWhole: (key: string) => boolean,
): readonly [string, unknown][] {
  let content: string;
  try {
    content = readFileSync(file.path, "utf8");
  } catch (thrown) {
    const { code, message } = thrown as NodeJS.ErrnoException;
    if (file.isNamed || (code !== "ENOENT" && code !== "ENOTDIR")) problems.push(`${file.path}: ${message}`);
    return [];
  }
  try {
    const value: unknown = JSON.parse(content);
    if (isObject(value)) return flatten(value, "", isWhole);
    problems.push(`${file.path}: the file must hold one JSON object`);
  } catch (thrown) {
    problems.push(`${file.path}: ${(thrown as Error).message}${lineOf(content, thrown)}`);
  }
  return [];
}

function flatten(
  value: Readonly<Record<string, unknown>>,
  prefix: string,
  isWhole: (key: string) => boolean,
): [string, unknown][] {
  return Object.entries(value).flatMap(([name, item]): [string, unknown][] => {
    const key = `${prefix}${name}`;
    return isObject(item) && !isWhole(key) ? flatten(item, `${key}.`, isWhole) : [[key, item]];
  });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function lineOf(content: string, thrown: unknown): string {
  const position = /position (\d+)/.exec((thrown as Error).message)?.[1];
  if (position === undefined) return "";
  return ` (line ${content.slice(0, Number(position)).split("\n").length})`;
}
