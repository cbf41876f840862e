import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { askAhead } from "../compose/ask-ahead.ts";
import { bundlePlace, isBundleCurrent } from "./bundle-place.ts";
import { loadBundle } from "./load-bundle.ts";

/** Bundled as CommonJS: Node's loader of modules alone would take longer to start than all of this. */
const dist = dirname(dirname(fileURLToPath(import.meta.url)));
const argv = process.argv.slice(2);
const { version } = JSON.parse(readFileSync(join(dist, "../package.json"), "utf8"));
// Asked for by scripts and prompts again and again: answered before anything else is loaded.
if (argv.length === 1 && (argv[0] === "--version" || argv[0] === "-V")) {
  process.stdout.write(`${version}\n`);
} else if (isBundleCurrent(dist)) {
  void start(version);
} else {
  void import(pathToFileURL(bundlePlace(dist).unbundled).href);
}

async function start(version: string): Promise<void> {
  const ahead = await askAhead(argv, process.env);
  const { runProcess } = loadBundle<typeof import("./run-process.ts")>(bundlePlace(dist).program);
  await runProcess(process, { argv, version, env: { ...process.env }, ahead });
}
