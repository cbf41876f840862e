import { AidoError } from "@aido/sdk/protocol";
import type { SwarmContainer } from "../state/swarm-state.ts";
import { isActive } from "../state/swarm-state.ts";
import type { TaskFile } from "../tasks/task-file.ts";
import { workerName } from "../workers/worker-name.ts";

export interface TakenBranches {
  /** Branches that work trees have, with their places. */
  readonly checkedOut: ReadonlyMap<string, string>;
  readonly defaultBranch: string | undefined;
}

export interface BranchUse extends TakenBranches {
  readonly entries: readonly SwarmContainer[];
}

interface Claim {
  readonly branch: string;
  readonly name: string;
  readonly by: string;
}

/** One worker, one name and one branch for each task file, and no branch that somebody else works on. */
export function checkBranches(files: readonly TaskFile[], use: BranchUse): void {
  const claims: Claim[] = use.entries
    .filter((entry) => isActive(entry) && !files.some(({ path }) => path === entry.taskFilePath))
    .map(({ branchName, containerName, taskFilePath }) => ({
      branch: branchName,
      name: containerName,
      by: `the worker ${containerName} (${taskFilePath})`,
    }));
  for (const file of files) {
    const branch = file.metadata.branchName;
    const name = workerName(file.path);
    refuseClaimed({ branch, name, by: file.path }, claims);
    const place = use.checkedOut.get(branch);
    if (place !== undefined) {
      throw inUse(file.path, `${branch} is checked out in ${place}`, "Switch to another branch there");
    }
    if (branch === use.defaultBranch) {
      throw inUse(
        file.path,
        `${branch} is the default branch of origin`,
        "Workers push to a branch of their own",
      );
    }
    claims.push({ branch, name, by: file.path });
  }
}

function refuseClaimed(wanted: Claim, claims: readonly Claim[]): void {
  for (const { branch, name, by } of claims) {
    if (name === wanted.name) {
      throw new AidoError("CONTAINER_NAME_TAKEN", `${wanted.by} and ${by} would both be the worker ${name}`, {
        hint: "Rename one of the files: a worker is called after its file, without the date.",
        details: { worker: name },
      });
    }
    const isSame = branch === wanted.branch;
    // Git keeps branches as files: what is a branch cannot be a directory of others.
    if (isSame || branch.startsWith(`${wanted.branch}/`) || wanted.branch.startsWith(`${branch}/`)) {
      const what = isSame ? `${branch} is also` : `${wanted.branch} cannot be beside ${branch},`;
      throw inUse(wanted.by, `${what} the branch of ${by}`, "Give each task file its own branch");
    }
  }
}

function inUse(file: string, problem: string, fix: string): AidoError {
  return new AidoError("BRANCH_IN_USE", `${file}: metadata.branchName: ${problem}`, {
    hint: `${fix}, or set another metadata.branchName.`,
    details: { file, field: "metadata.branchName" },
  });
}
