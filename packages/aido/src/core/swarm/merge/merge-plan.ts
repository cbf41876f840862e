import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { AidoError } from "@aido/sdk/protocol";
import { writeJson } from "../../run/write-atomically.ts";
import type { WorkerBranch } from "./choose-branches.ts";
import type { Git } from "./git.ts";
import { flatName, isRefName } from "./ref-name.ts";

/** What a merge set out to do, so that it can go on after a conflict or a crash. Kept in the repository's own directory. */
export interface MergePlan {
  into: string;
  branches: readonly WorkerBranch[];
}

const FOLDER = "aido-merge";

export async function savePlan(git: Git, plan: MergePlan): Promise<void> {
  await mkdir(join(git.directory, FOLDER), { recursive: true });
  await writeJson(path(git, plan.into), { version: 1, ...plan }, { durable: true });
}

export async function removePlan(git: Git, into: string): Promise<void> {
  await rm(path(git, into), { force: true });
}

/** The one that was not finished; of several, the one for `into`. */
export async function loadPlan(git: Git, into: string | undefined): Promise<MergePlan> {
  const names = (await planned(git)).filter(
    (name) => into === undefined || name === `${flatName(into)}.json`,
  );
  const [name, ...others] = names;
  if (name === undefined) {
    throw new AidoError("RESOURCE_NOT_FOUND", "There is no merge to continue", {
      hint: "Begin one with `aido swarm merge`.",
    });
  }
  if (others.length > 0) {
    const branches = names.map((each) => each.replaceAll("+", "/").replace(/\.json$/, ""));
    throw new AidoError("VALIDATION_ERROR", `There are several merges to continue: ${branches.join(", ")}`, {
      hint: "Say which one with --into.",
    });
  }
  const plan = parsePlan(await readFile(join(git.directory, FOLDER, name), "utf8"));
  if (plan !== undefined) return plan;
  const shown = join(git.directory, FOLDER, name);
  throw new AidoError("MERGE_REFUSED", `${shown} is damaged`, {
    hint: "Remove it and begin again with `aido swarm merge`: what is merged is left out.",
  });
}

export function parsePlan(text: string): MergePlan | undefined {
  let value: { into?: unknown; branches?: unknown };
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { into, branches } = value ?? {};
  if (typeof into !== "string" || !isRefName(into) || !Array.isArray(branches)) return undefined;
  const read: WorkerBranch[] = [];
  for (const each of branches as { branch?: unknown; worker?: unknown }[]) {
    if (typeof each?.branch !== "string" || !isRefName(each.branch)) return undefined;
    read.push({ branch: each.branch, worker: typeof each.worker === "string" ? each.worker : undefined });
  }
  return { into, branches: read };
}

async function planned(git: Git): Promise<string[]> {
  const names = await readdir(join(git.directory, FOLDER)).catch(() => []);
  return names.filter((name) => name.endsWith(".json"));
}

function path(git: Git, into: string): string {
  return join(git.directory, FOLDER, `${flatName(into)}.json`);
}
