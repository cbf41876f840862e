import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setBranch } from "./open-workspace.ts";
import { type Staging, stageWork } from "./stage-work.ts";
import type { WorkerGit } from "./worker-git.ts";

const LOCKS = ["index.lock", "HEAD.lock", "packed-refs.lock", "config.lock"];

export interface Identity {
  readonly name: string;
  readonly email: string;
}

/** Who commits: whom the environment names, else whom the workspace's repository does, else the adapter. */
export async function findIdentity(
  git: WorkerGit,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Identity> {
  const [name, email] = await Promise.all(
    ["name", "email"].map(async (field) => {
      const given = env[`GIT_AUTHOR_${field.toUpperCase()}`];
      if (given !== undefined && given.trim() !== "") return given;
      const file = join(git.shared, "config");
      const { stdout } = await git.inShared(["config", "--file", file, "--no-includes", `user.${field}`], {
        answers: [1],
      });
      return stdout.toString("utf8").trim();
    }),
  );
  return { name: name || "aimi worker", email: email || "worker@aimi.invalid" };
}

/**
 * All that is in the workspace and not ignored, as a commit behind `tip` and behind what the agent committed itself.
 * Gives the branch's new tip, which is the old one when nothing has changed. Nobody may work in the workspace meanwhile.
 */
export async function commitWork(
  git: WorkerGit,
  work: { branch: string; tip: string; message: string; identity: Identity } & Staging,
): Promise<string> {
  const { branch, tip, identity } = work;
  await removeLocks(git, branch);
  const head = await git.findShared("HEAD");
  // Commits that do not follow the branch, as after a rebase, are left behind; the files they made are kept.
  const parent = head !== undefined && (await git.isAncestor(tip, head)) ? head : tip;
  // What cannot be added must not keep the rest from being kept.
  await stageWork(git, work);
  const tree = await git.line(["write-tree"]);
  if (tree === (await git.find(`${parent}^{tree}`))) {
    if (parent !== tip || head !== tip) await setBranch(git, branch, parent);
    return parent;
  }
  const { name, email } = identity;
  const who = {
    GIT_AUTHOR_NAME: name,
    GIT_AUTHOR_EMAIL: email,
    GIT_COMMITTER_NAME: name,
    GIT_COMMITTER_EMAIL: email,
  };
  const commit = await git.line(["commit-tree", tree, "-p", parent, "-F", "-"], {
    stdin: work.message,
    env: who,
  });
  await setBranch(git, branch, commit);
  return commit;
}

/** A git that was ended in its work leaves them, and then refuses to work. */
async function removeLocks(git: WorkerGit, branch: string): Promise<void> {
  for (const name of [...LOCKS, `refs/heads/${branch}.lock`]) {
    await rm(join(git.shared, name), { force: true, recursive: true });
  }
}
