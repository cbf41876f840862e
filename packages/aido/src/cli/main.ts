#!/usr/bin/env node
import { readFileSync } from "node:fs";

/** The version is asked for by scripts and prompts again and again: it is answered before anything else is loaded. */
const argv = process.argv.slice(2);
const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
if (argv.length === 1 && (argv[0] === "--version" || argv[0] === "-V")) {
  process.stdout.write(`${version}\n`);
} else {
  const { runProcess } = await import("./run-process.ts");
  await runProcess(process, { argv, version, env: { ...process.env } });
}
