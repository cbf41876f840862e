import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { GitRepository } from "../../src/core/history/git-repository.ts";
import { SandboxHistory } from "../../src/core/history/sandbox-history.ts";
import { scriptedWorkspace } from "./scripted-workspace.ts";

/**
 * Records two entries of a workspace and closes. Kills itself, as with kill -9, before the named change of a file;
 * says how many there were otherwise.
 */
const [directory = "", dieAt = ""] = process.argv.slice(2);
let steps = 0;
for (const name of ["writeFileSync", "writeSync", "renameSync", "openSync", "mkdirSync"] as const) {
  const real = fs[name] as (...args: unknown[]) => unknown;
  Object.assign(fs, {
    [name]: (...args: unknown[]) => {
      if (String(steps++) === dieAt) process.kill(process.pid, "SIGKILL");
      return real(...args);
    },
  });
}
syncBuiltinESMExports();

const workspace = scriptedWorkspace();
const history = new SandboxHistory(new GitRepository(directory), workspace);
workspace.write("README.md", "readme");
await history.record({ execId: "unknown", at: new Date(1_000), message: "Initial commit" });
workspace.write("d/a", "1");
await history.record({ execId: "one", at: new Date(2_000), message: "Update" });
history.close();
process.stdout.write(`${steps}\n`);
