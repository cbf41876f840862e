import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const run = promisify(execFile);
const PACKAGE = fileURLToPath(new URL("../..", import.meta.url));
const PROGRAM = `
import { createAgentLayer } from "aido/agent-layer";
const config = { image: "host" };
const layer = createAgentLayer({ dataDir: process.argv[1], driver: "local", config, log: () => {} });
const id = await layer.startContainer("by-name");
const { stdout } = await layer.execInContainer(id, "pwd");
await layer.cleanupContainer(id);
await layer.close();
process.stdout.write(stdout);
`;

test("S4-37 the agent layer is imported by its package's name, as it is built", async () => {
  const directory = await mkdtemp(join(tmpdir(), "aido-agent-package-"));
  try {
    const argv = ["--input-type=module", "--eval", PROGRAM, join(directory, "data")];
    expect((await run(process.execPath, argv, { cwd: PACKAGE })).stdout).toBe("/workspace\n");
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
