import { lstat, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { failingAs, WorkerFailure } from "../worker-failure.ts";
import { leaveOut } from "./leave-out.ts";
import type { Remote } from "./remote.ts";
import type { WorkerGit } from "./worker-git.ts";

/** A clone of a large repository over a slow line. */
const NETWORK_MS = 30 * 60_000;

export interface OpenedWorkspace {
  /** Where the branch is now; its files are in the workspace. */
  readonly tip: string;
  /** Where it left the default branch: what differs from here is the branch's work. */
  readonly base: string;
  readonly defaultBranch: string | undefined;
  /** Origin has had it before. */
  readonly isPublished: boolean;
}

/**
 * The workspace with the branch checked out: as it is here when it has commits that origin lacks, else as it is at origin,
 * else a new one. Files that are there and not part of the branch stay: images bring dependencies and more.
 */
export async function openWorkspace(
  git: WorkerGit,
  remote: Remote,
  branch: string,
  options: { signal: AbortSignal; keepWork: (tip: string) => Promise<void> },
): Promise<OpenedWorkspace> {
  const { signal } = options;
  const isFresh = await failingAs("GIT_CLONE_FAILED", "Cannot make the workspace", () =>
    makeRepository(git, remote),
  );
  const defaultBranch = await failingAs("GIT_CLONE_FAILED", "Cannot clone the repository", () =>
    fetchAll(git, remote, branch, signal),
  );
  return await failingAs("GIT_CHECKOUT_FAILED", `Cannot check out ${branch}`, async () => {
    await shareRefs(git);
    const head = isFresh ? undefined : await git.findShared("HEAD");
    const current = isFresh ? undefined : await headBranch(git);
    // Cut off in its work, an earlier session left files that are in no commit.
    if (head !== undefined) await git.run(["read-tree", head], { signal });
    if (head !== undefined && current === branch) await options.keepWork(head);
    const main =
      defaultBranch === undefined ? undefined : await git.find(`refs/remotes/origin/${defaultBranch}`);
    const published = await git.find(`refs/remotes/origin/${branch}`);
    const local = await git.findShared(`refs/heads/${branch}`);
    const start = await startOf(git, head, main);
    const tip = await chooseTip(git, branch, { local, published, start });
    await checkOut(git, branch, tip, signal);
    if (current !== branch) await leaveOut(git, signal);
    const base = main === undefined ? undefined : await mergeBase(git, main, tip);
    return { tip, base: base ?? tip, defaultBranch, isPublished: published !== undefined };
  });
}

/** Whether it was made now. */
async function makeRepository(git: WorkerGit, remote: Remote): Promise<boolean> {
  await mkdir(git.workspace, { recursive: true });
  const found = await lstat(git.shared).catch(absent);
  if (found !== undefined && !found.isDirectory()) {
    throw new WorkerFailure("GIT_CLONE_FAILED", "The workspace's .git is a link or a file, not a repository");
  }
  if (found === undefined) {
    await git.inShared(["init", "--quiet", "--template=", git.workspace]);
    await git.inShared(["config", "remote.origin.url", remote.url]);
    await git.inShared(["config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"]);
  } else {
    // A clone that was cut at some depth says so here; without it git would look for what is not there.
    const shallow = await readFile(join(git.shared, "shallow")).catch(absent);
    if (shallow !== undefined) await writeFile(join(git.directory, "shallow"), shallow);
  }
  return found === undefined;
}

/** Gives the name of the default branch, when origin has one. Raises INVALID_INPUT when that is the worker's own. */
async function fetchAll(
  git: WorkerGit,
  remote: Remote,
  branch: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const call = { env: remote.env, limitMs: NETWORK_MS, signal };
  const refspecs = ["+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"];
  const fetch = ["fetch", "--quiet", "--no-auto-gc", "--no-write-fetch-head", "--no-tags", remote.url];
  return await git.overNetwork(remote, async (own) => {
    const { stdout } = await own.run(["ls-remote", "--symref", "--", remote.url, "HEAD"], call);
    const defaultBranch = /^ref: refs\/heads\/(\S+)\tHEAD$/m.exec(stdout.toString("utf8"))?.[1];
    if (defaultBranch === branch) throw isDefault(branch);
    await own.run([...fetch, ...refspecs], call);
    const stdin = await fetchedRefs(own);
    await git.run(["update-ref", "--stdin"], { stdin });
    return defaultBranch;
  });
}

/** The host may not have known: its clone need not say which branch that is. */
function isDefault(branch: string): WorkerFailure {
  return new WorkerFailure(
    "INVALID_INPUT",
    `${branch} is the default branch of origin, which workers do not push to; name another branchName`,
  );
}

/** The agent finds origin's branches and tags by the usual names. */
async function shareRefs(git: WorkerGit): Promise<void> {
  await git.inShared(["update-ref", "--stdin"], { stdin: await fetchedRefs(git) });
}

async function fetchedRefs(git: WorkerGit): Promise<string> {
  const format = "--format=update %(refname) %(objectname)";
  return (await git.run(["for-each-ref", format, "refs/remotes", "refs/tags"])).stdout.toString("utf8");
}

async function headBranch(git: WorkerGit): Promise<string | undefined> {
  const { code, stdout } = await git.inShared(["symbolic-ref", "--quiet", "--short", "HEAD"], {
    answers: [1, 128],
  });
  return code === 0 ? stdout.toString("utf8").trim() : undefined;
}

/** Where a new branch begins: the default branch, or what the image was made from when that is not part of it. */
async function startOf(
  git: WorkerGit,
  head: string | undefined,
  main: string | undefined,
): Promise<string | undefined> {
  if (head === undefined || main === undefined) return head ?? main;
  return (await git.isAncestor(head, main)) ? main : head;
}

async function chooseTip(
  git: WorkerGit,
  branch: string,
  {
    local,
    published,
    start,
  }: { local: string | undefined; published: string | undefined; start: string | undefined },
): Promise<string> {
  if (local === undefined || published === undefined) {
    const tip = local ?? published ?? start;
    if (tip === undefined) throw new WorkerFailure("GIT_CHECKOUT_FAILED", "The repository has no commits");
    return tip;
  }
  if (await git.isAncestor(published, local)) return local;
  if (await git.isAncestor(local, published)) return published;
  throw new WorkerFailure(
    "GIT_CHECKOUT_FAILED",
    `${branch} has commits here that origin does not have, and the other way round`,
  );
}

/** From the commit in the index; files in the way of the branch's are replaced, and what no branch has stays. */
async function checkOut(git: WorkerGit, branch: string, tip: string, signal: AbortSignal): Promise<void> {
  await git.run(["read-tree", "--reset", "-u", tip], { signal, limitMs: NETWORK_MS });
  // What an image was made without would look as if the agent had removed it.
  await git.run(["checkout-index", "--all", "--quiet"], { signal, answers: [1, 128], limitMs: NETWORK_MS });
  await setBranch(git, branch, tip);
}

/** The workspace's repository is on the branch, at this commit, with its files known. */
export async function setBranch(git: WorkerGit, branch: string, tip: string): Promise<void> {
  await git.inShared(["update-ref", `refs/heads/${branch}`, tip]);
  await git.inShared(["symbolic-ref", "HEAD", `refs/heads/${branch}`]);
  await git.inShared(["read-tree", tip]);
}

async function mergeBase(git: WorkerGit, one: string, other: string): Promise<string | undefined> {
  const { code, stdout } = await git.run(["merge-base", one, other], { answers: [1] });
  return code === 0 ? stdout.toString("utf8").split("\n", 1)[0] : undefined;
}

function absent(thrown: NodeJS.ErrnoException): undefined {
  if (thrown.code === "ENOENT") return undefined;
  throw thrown;
}
