import { existsSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { AidoError, isAidoError } from "@aido/sdk/protocol";
import { searchPath } from "../config/process-config.ts";
import { isMadeHere } from "./scope.ts";

/**
 * A repository may bring a data directory along: records that name any path, keys and tokens of whoever wrote it, links in the place of
 * files that are written to. What is in it is obeyed, so one that was not made in its place and that git has is not used.
 */
export async function refuseCarried(dataDir: string): Promise<void> {
  // Asked of git only where the directory is new to this machine.
  if (!existsSync(dataDir) || isMadeHere(dataDir)) return;
  const place = resolve(dataDir);
  if (!(await isTracked(dirname(place), basename(place)))) return;
  throw new AidoError("FORBIDDEN", `The data directory ${dataDir} came with the repository that it is in`, {
    hint: `Nothing of it is used. Look at it, move it away and take it out of the repository (\`git rm -r --cached ${basename(place)}\`), or name another one with --data-dir.`,
    details: { dataDir },
  });
}

async function isTracked(parent: string, name: string): Promise<boolean> {
  const { runGit } = await import("../core/swarm/run-git.ts");
  // Also in somebody else's repository: its list of files is read, and nothing that it names is run.
  const settings = ["-c", "core.fsmonitor=false", "-c", "safe.directory=*"];
  const args = ["--literal-pathspecs", ...settings, "ls-files", "-z", "--", name];
  try {
    return (
      (await runGit(args, parent, { code: "FORBIDDEN" }, { env: { PATH: searchPath() } })).stdout.length > 0
    );
  } catch (thrown) {
    // Without a repository, or without git, nothing came with one.
    if (isAidoError(thrown, "FORBIDDEN") || isAidoError(thrown, "RUNTIME_UNAVAILABLE")) return false;
    throw thrown;
  }
}
