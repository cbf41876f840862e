import { AidoError } from "@aido/sdk/protocol";
import { refuseCheckedOut } from "./checked-out.ts";
import type { WorkerBranch } from "./choose-branches.ts";
import { type ConflictHunks, readHunks } from "./conflict-hunks.ts";
import { fetchBranches, fetchedRef, listRemote } from "./fetch-branches.ts";
import type { Git } from "./git.ts";
import { checkIdentity, dropFetched, findCommit, Integration } from "./integration.ts";
import { loadPlan, type MergePlan, removePlan, savePlan } from "./merge-plan.ts";
import { areRelated, type ConflictingFile, findConflicts, mergeTrees } from "./merge-trees.ts";

const MOST_FILES = 10;

export interface MergedBranch extends WorkerBranch {
  /** The merge commit; undefined when the branch was in already. */
  commit: string | undefined;
}

export interface Conflict extends WorkerBranch {
  /** Of those merged before, the ones it does not go together with. */
  with: readonly WorkerBranch[];
  files: readonly (ConflictingFile & ConflictHunks)[];
  /** Further ones, without their hunks. */
  more: readonly string[];
  /** Where its commits are, for a merge by hand. */
  ref: string;
}

export interface MergeOutcome {
  into: string;
  tip: string;
  merged: readonly MergedBranch[];
  /** It stopped at this one. */
  conflict: Conflict | undefined;
  remaining: readonly WorkerBranch[];
}

export type OnStep = (step: string) => void;

/** Fetches the branches and merges one after the other; each is kept as soon as it is merged. */
export async function mergeBranches(
  git: Git,
  plan: MergePlan & { base: string | undefined },
  onStep: OnStep,
): Promise<MergeOutcome> {
  await prepare(git, plan);
  const base = await fetchAll(git, plan, onStep);
  await Integration.open(git, plan.into, base);
  await savePlan(git, { into: plan.into, branches: plan.branches });
  return await carryOut(git, plan, onStep);
}

/** Goes on with what was begun, with the commits that were fetched then. */
export async function continueMerge(
  git: Git,
  into: string | undefined,
  onStep: OnStep,
): Promise<MergeOutcome> {
  const plan = await loadPlan(git, into);
  await prepare(git, plan);
  return await carryOut(git, plan, onStep);
}

async function prepare(git: Git, { into, branches }: MergePlan): Promise<void> {
  if (branches.some(({ branch }) => branch === into)) {
    throw new AidoError("VALIDATION_ERROR", `${into} is itself one of the branches to merge`, {
      hint: "Choose another branch with --into.",
    });
  }
  await checkIdentity(git);
  await refuseCheckedOut(git, into);
}

/** Returns the ref of the branch that a new integration branch begins at. */
export async function fetchAll(
  git: Git,
  { into, branches, base }: MergePlan & { base: string | undefined },
  onStep: OnStep,
): Promise<string | undefined> {
  onStep("asking origin for its branches");
  const remote = await listRemote(git);
  const start = base ?? remote.defaultBranch;
  for (const { branch, worker } of branches) if (!remote.branches.has(branch)) throw notThere(branch, worker);
  if (base !== undefined && !remote.branches.has(base)) throw notThere(base, undefined);
  const wanted = branches.map(({ branch }) => branch);
  const hasStart = start !== undefined && remote.branches.has(start);
  onStep(`fetching ${wanted.length} branch${wanted.length === 1 ? "" : "es"}`);
  await fetchBranches(git, into, hasStart ? [...wanted, start] : wanted);
  return hasStart ? fetchedRef(into, start) : undefined;
}

async function carryOut(git: Git, { into, branches }: MergePlan, onStep: OnStep): Promise<MergeOutcome> {
  const integration = await Integration.open(git, into, undefined);
  const merged: MergedBranch[] = [];
  for (const [index, one] of branches.entries()) {
    onStep(`merging ${one.branch} (${index + 1} of ${branches.length})`);
    const result = await mergeOne(git, integration, one);
    if ("files" in result) {
      const others = await conflictingWith(git, into, one, merged);
      const remaining = branches.slice(index + 1);
      return { into, tip: integration.tip, merged, conflict: { ...result, with: others }, remaining };
    }
    merged.push(result);
  }
  await dropFetched(git, into);
  await removePlan(git, into);
  return { into, tip: integration.tip, merged, conflict: undefined, remaining: [] };
}

async function mergeOne(
  git: Git,
  integration: Integration,
  one: WorkerBranch,
): Promise<MergedBranch | Omit<Conflict, "with">> {
  const ref = fetchedRef(integration.branch, one.branch);
  const commit = await findCommit(git, ref);
  if (commit === undefined) throw notThere(one.branch, one.worker);
  if (await integration.has(commit)) return { ...one, commit: undefined };
  const { tip } = integration;
  if (!(await areRelated(git, tip, commit))) throw unrelated(one.branch);
  const { tree, conflicts } = await mergeTrees(git, tip, commit);
  if (conflicts.length === 0) {
    const message = `Merge branch '${one.branch}'${one.worker === undefined ? "" : ` of ${one.worker}`}\n`;
    return { ...one, commit: await integration.add(tree, { commit, branch: one.branch, message }) };
  }
  const files: (ConflictingFile & ConflictHunks)[] = [];
  for (const file of conflicts.slice(0, MOST_FILES)) {
    files.push({ ...file, ...(await readHunks(git, tree, file.path, { ours: tip, theirs: commit })) });
  }
  return { ...one, files, more: conflicts.slice(MOST_FILES).map(({ path }) => path), ref };
}

/** So that whoever resolves it knows whom to ask. */
async function conflictingWith(
  git: Git,
  into: string,
  one: WorkerBranch,
  merged: readonly MergedBranch[],
): Promise<WorkerBranch[]> {
  const found: WorkerBranch[] = [];
  const theirs = fetchedRef(into, one.branch);
  for (const { branch, worker } of merged) {
    const ours = fetchedRef(into, branch);
    if ((await findConflicts(git, ours, theirs)).length > 0) found.push({ branch, worker });
  }
  return found;
}

function notThere(branch: string, worker: string | undefined): AidoError {
  const whose = worker === undefined ? "" : `, the branch of ${worker},`;
  return new AidoError("BRANCH_NOT_FOUND", `${branch}${whose} is not on origin`, {
    hint: "Nothing was merged. Push it, or name the branches to merge: `aido swarm merge <branch>…`.",
    details: { branch },
  });
}

function unrelated(branch: string): AidoError {
  return new AidoError("MERGE_REFUSED", `${branch} shares no history with what it would be merged into`, {
    hint: "Its worker began from nothing, or rewrote it. Look at it, then leave it out or merge it by hand.",
    details: { branch },
  });
}
