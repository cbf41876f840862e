import { resolve } from "node:path";
import { AidoError, ERROR_KINDS, isAidoError } from "@aido/sdk/protocol";
import { chooseBranches, noBranchName, type WorkerBranch } from "../../core/swarm/merge/choose-branches.ts";
import type { Git } from "../../core/swarm/merge/git.ts";
import { continueMerge, type MergeOutcome, mergeBranches } from "../../core/swarm/merge/merge-branches.ts";
import { openRepository } from "../../core/swarm/merge/open-repository.ts";
import { previewMerge } from "../../core/swarm/merge/preview-merge.ts";
import { isRefName } from "../../core/swarm/merge/ref-name.ts";
import type { SwarmState } from "../../core/swarm/state/swarm-state.ts";
import type { CliContext } from "../context.ts";
import { describeOutcome, describePreview, nextSteps } from "../output/merge-report.ts";
import { note, printResult } from "../output/print.ts";
import { interruptible } from "./interrupt.ts";
import { reconciledState } from "./swarm/reconciled.ts";

export interface SwarmMergeOptions {
  into?: string;
  base?: string;
  order?: string;
  continue?: boolean;
  dryRun?: boolean;
  dir?: string;
}

/** Ends as a conflict of any kind ends when it stopped at one. */
const STOPPED = ERROR_KINDS.conflict.exit;

export async function swarmMerge(
  context: CliContext,
  named: readonly string[],
  options: SwarmMergeOptions,
): Promise<number> {
  checkOptions(named, options);
  const project = resolve(context.cwd, options.dir ?? ".");
  return await interruptible(context, async (signal) => {
    const git = await openRepository(project, { env: context.env, signal });
    if (options.continue) {
      return await printOutcome(
        context,
        project,
        await continueMerge(git, options.into, context.progress.show),
      );
    }
    const allIsNamed = named.length > 0 && options.into !== undefined;
    const state = await findState(context, { dir: options.dir, signal }, allIsNamed);
    const plan = await makePlan(context, state, named, options);
    if (plan.branches.length === 0) return 0;
    if (options.dryRun) return await preview(context, git, plan);
    return await printOutcome(context, project, await mergeBranches(git, plan, context.progress.show));
  });
}

function checkOptions(named: readonly string[], options: SwarmMergeOptions): void {
  const { into, base, order, dryRun } = options;
  if (options.continue && (named.length > 0 || [base, order, dryRun].some((given) => given !== undefined))) {
    throw new AidoError(
      "VALIDATION_ERROR",
      "--continue goes on with what was asked for before: only --into can be with it",
      {
        hint: "To merge something else, leave --continue away: what is merged already is left out.",
      },
    );
  }
  for (const branch of [into, base])
    if (branch !== undefined && !isRefName(branch)) throw noBranchName(branch);
}

/** A swarm is not needed when everything is named. Workers may have ended while nobody looked, so it is made true first. */
async function findState(
  context: CliContext,
  where: { dir: string | undefined; signal: AbortSignal },
  allIsNamed: boolean,
): Promise<SwarmState | undefined> {
  try {
    return await reconciledState(context, where);
  } catch (thrown) {
    if (allIsNamed && isAidoError(thrown, "SWARM_NOT_FOUND")) return undefined;
    throw thrown;
  }
}

async function makePlan(
  context: CliContext,
  state: SwarmState | undefined,
  named: readonly string[],
  { into, base, order }: SwarmMergeOptions,
) {
  const workers = state?.containers ?? [];
  const first = (order ?? "")
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
  const branches = chooseBranches({ workers, named, first });
  if (branches.length === 0) await note(context, "No worker has completed; there is nothing to merge");
  else if (named.length === 0) {
    const left = workers.filter(({ status }) => status !== "completed");
    for (const { containerName, status } of left)
      await note(context, `left out: ${containerName} (${status})`);
  }
  return { branches, base, into: into ?? `aimi/integration-${state?.swarmId.slice(0, 8) ?? ""}` };
}

async function preview(
  context: CliContext,
  git: Git,
  plan: { into: string; branches: readonly WorkerBranch[]; base: string | undefined },
): Promise<number> {
  const found = await previewMerge(git, plan, context.progress.show);
  context.progress.clear();
  await printResult(context, found, () => describePreview(found, context.stdout.columns));
  return found.pairs.length > 0 ? STOPPED : 0;
}

async function printOutcome(context: CliContext, project: string, outcome: MergeOutcome): Promise<number> {
  context.progress.clear();
  const value = { ...outcome, conflict: outcome.conflict ?? null, next: nextSteps(outcome, project) };
  await printResult(context, value, () => describeOutcome(outcome, project, context.stdout.columns));
  return outcome.conflict === undefined ? 0 : STOPPED;
}
