import { AidoError } from "@aido/sdk/protocol";
import type { Git } from "./git.ts";
import { flatName, isRefName } from "./ref-name.ts";

const FETCH_LIMIT_MS = 600_000;
const LIST_LIMIT_MS = 60_000;

/** Where fetched branches are kept until they are merged: a corner of the refs that no other command looks into. */
export function fetchedRef(into: string, branch: string): string {
  return `${fetchedPrefix(into)}${flatName(branch)}`;
}

export function fetchedPrefix(into: string): string {
  return `refs/aido/merge/${flatName(into)}/`;
}

export interface Remote {
  /** origin's own; undefined when it has none. */
  defaultBranch: string | undefined;
  branches: ReadonlySet<string>;
}

/** What origin has. */
export async function listRemote(git: Git): Promise<Remote> {
  const known = await git.run(["remote", "get-url", "origin"], {
    code: "GIT_FETCH_FAILED",
    answers: [2, 128],
  });
  if (known.code !== 0) {
    throw new AidoError("VALIDATION_ERROR", "The repository has no remote named origin", {
      hint: "Workers push to it and merging fetches from it: `git remote add origin <url>`.",
    });
  }
  const options = { code: "GIT_FETCH_FAILED", limitMs: LIST_LIMIT_MS } as const;
  const { stdout } = await reach(() =>
    git.run(["ls-remote", "--symref", "origin", "HEAD", "refs/heads/*"], options),
  );
  const branches = new Set<string>();
  let defaultBranch: string | undefined;
  for (const line of stdout.toString("utf8").split("\n")) {
    const [left = "", name = ""] = line.split("\t");
    if (left.startsWith("ref: refs/heads/") && name === "HEAD")
      defaultBranch = left.slice("ref: refs/heads/".length);
    if (name.startsWith("refs/heads/")) branches.add(name.slice("refs/heads/".length));
  }
  return {
    defaultBranch: defaultBranch !== undefined && isRefName(defaultBranch) ? defaultBranch : undefined,
    branches,
  };
}

/** Fetches the branches into refs of their own. The user's remote-tracking branches, tags and FETCH_HEAD stay as they are. */
export async function fetchBranches(git: Git, into: string, branches: readonly string[]): Promise<void> {
  const unique = [...new Set(branches)];
  const fetch = (some: readonly string[]) =>
    git.run(
      [
        "fetch",
        "--quiet",
        "--no-tags",
        "--no-recurse-submodules",
        "--no-write-fetch-head",
        "--no-auto-maintenance",
        "--refmap=",
        "origin",
        ...some.map((branch) => `+refs/heads/${branch}:${fetchedRef(into, branch)}`),
      ],
      { code: "GIT_FETCH_FAILED", limitMs: FETCH_LIMIT_MS },
    );
  try {
    await reach(() => fetch(unique));
  } catch (thrown) {
    if (unique.length === 1 || !isFetchFailure(thrown)) throw thrown;
    // One that is refused spoils the whole fetch; which one it is, only they alone can tell.
    for (const branch of unique) await reach(() => fetch([branch]), branch);
  }
}

async function reach<Result>(work: () => Promise<Result>, branch?: string): Promise<Result> {
  try {
    return await work();
  } catch (thrown) {
    if (!isFetchFailure(thrown)) throw thrown;
    const what =
      branch === undefined ? "Fetching from origin failed" : `Fetching ${branch} from origin failed`;
    throw new AidoError("GIT_FETCH_FAILED", `${what}: ${thrown.message}`, {
      hint: "Nothing was merged. `git fetch origin` must work without asking for a password.",
      details: branch === undefined ? {} : { branch },
      cause: thrown,
    });
  }
}

function isFetchFailure(thrown: unknown): thrown is AidoError {
  return thrown instanceof Error && (thrown as Partial<AidoError>).code === "GIT_FETCH_FAILED";
}
