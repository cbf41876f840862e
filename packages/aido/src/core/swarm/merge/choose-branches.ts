import { AidoError } from "@aido/sdk/protocol";
import { isActive, type SwarmContainer } from "../state/swarm-state.ts";
import { isRefName } from "./ref-name.ts";

/** A branch to merge, and whose it is when it is a worker's. */
export interface WorkerBranch {
  branch: string;
  worker: string | undefined;
}

export interface Choice {
  /** The swarm's, in their order. */
  workers: readonly SwarmContainer[];
  /** Workers or branches; none means every worker that completed. */
  named: readonly string[];
  /** Those that come first. */
  first: readonly string[];
}

/** Which branches to merge, in which order: as named, otherwise as the swarm has them. The same choice gives the same order. */
export function chooseBranches({ workers, named, first }: Choice): WorkerBranch[] {
  const chosen =
    named.length > 0
      ? named.map((name) => branchOf(name, workers))
      : workers.filter(({ status }) => status === "completed").map(toBranch);
  for (const { branch } of chosen) if (!isRefName(branch)) throw noBranchName(branch);
  const once = chosen.filter(
    ({ branch }, index) => chosen.findIndex((other) => other.branch === branch) === index,
  );
  const front = first.map((name) => {
    const found = once.find(({ branch }) => branch === branchOf(name, workers).branch);
    if (found !== undefined) return found;
    throw new AidoError("VALIDATION_ERROR", `--order names ${name}, which is not among what is merged`, {
      hint: `These are: ${once.map(({ branch }) => branch).join(", ") || "none"}.`,
    });
  });
  return [...new Set([...front, ...once])];
}

function branchOf(name: string, workers: readonly SwarmContainer[]): WorkerBranch {
  const worker =
    workers.find(({ containerName }) => containerName === name || containerName === `aimi-swarm-${name}`) ??
    workers.find(({ branchName }) => branchName === name);
  if (worker === undefined) return { branch: name, worker: undefined };
  if (!isActive(worker)) return toBranch(worker);
  throw new AidoError(
    "CONTAINER_BUSY",
    `${worker.containerName} is ${worker.status}: its branch ${worker.branchName} is not finished`,
    { hint: "Wait until it has ended, or leave it out." },
  );
}

function toBranch({ branchName, containerName }: SwarmContainer): WorkerBranch {
  return { branch: branchName, worker: containerName };
}

export function noBranchName(name: string): AidoError {
  return new AidoError("VALIDATION_ERROR", `${JSON.stringify(name)} is not a name of a branch`, {
    hint: "Letters, digits and _ . / @ # = - make one; it begins with none of - . /",
  });
}
