#!/usr/bin/env node
import { readFileSync, statSync } from "node:fs";

/** The version is asked for by scripts and prompts again and again: it is answered before anything else is loaded. */
const argv = process.argv.slice(2);
const here = (path: string) => new URL(path, import.meta.url);
const { version } = JSON.parse(readFileSync(here("../../package.json"), "utf8"));
if (argv.length === 1 && (argv[0] === "--version" || argv[0] === "-V")) {
  process.stdout.write(`${version}\n`);
} else {
  const { runProcess } = hasBundle() ? await loadBundle() : await import("./run-process.ts");
  await runProcess(process, { argv, version, env: { ...process.env } });
}

/** While the compiler alone was run since the bundle was made, only the compiled files are up to date. */
function hasBundle(): boolean {
  const madeAt = modifiedAt("../bundle/aido.js");
  return madeAt > 0 && madeAt >= modifiedAt("../../tsconfig.tsbuildinfo");
}

function modifiedAt(path: string): number {
  return statSync(here(path), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

async function loadBundle(): Promise<typeof import("./run-process.ts")> {
  return await import(here("../bundle/aido.js").href);
}
