// The product as a library, in a data directory of its own that goes with it.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDefaultAido } from "../packages/aido/dist/compose.js";
import { runExec } from "../packages/sdk/dist/index.js";

export const CLI = new URL("../packages/aido/dist/bundle/main.cjs", import.meta.url).pathname;
export const BUSYBOX_IMAGE = "aido-test:busybox";
/** Has bash. */
export const DEBIAN_IMAGE = "aido-test:python";

export function temporaryDirectory() {
  const path = mkdtempSync(join(tmpdir(), "aido-bench-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Runs `action` with an open Aido and destroys every sandbox it made. */
export async function withAido(driver, action) {
  const directory = temporaryDirectory();
  const aido = await openDefaultAido({ dataDir: join(directory.path, "data"), driver });
  try {
    return await action(aido);
  } finally {
    for (const sandbox of await aido.sandboxes.list()) await aido.sandboxes.destroy(sandbox.id);
    await aido.close();
    directory.remove();
  }
}

export function createSandbox(aido, driver, extra = {}) {
  return aido.sandboxes.create({
    image: driver === "docker" ? BUSYBOX_IMAGE : "bash",
    history: false,
    ...extra,
  });
}

export async function execTrue(aido, id, argv = ["/bin/true"]) {
  const done = await runExec(aido.execs, id, { argv, history: false });
  if (done.info.exitCode !== 0)
    throw new Error(`exec ended with ${done.info.exitCode}: ${Buffer.from(done.stderr)}`);
  return done;
}

export { runExec };
