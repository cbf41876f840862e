#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { bundlePlace, isBundleCurrent } from "./bundle-place.ts";

// The command line without a bundle; with one, what people start is `bundled-main`, and this leads there.
const dist = fileURLToPath(new URL("..", import.meta.url));
if (isBundleCurrent(dist)) {
  await import(bundlePlace(dist).main);
} else {
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  const { runProcess } = await import("./run-process.ts");
  await runProcess(process, { argv: process.argv.slice(2), version, env: { ...process.env } });
}
