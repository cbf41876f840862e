import type { WorkerGit } from "./worker-git.ts";

const LIMIT_MS = 30_000;
const MAX_BYTES = 8 * 1024 * 1024;

/** What differs from where the branch began: in commits up to `tip`, and in files that are in no commit yet. */
export async function changedPaths(
  git: WorkerGit,
  { base, tip, signal }: { base: string; tip: string; signal?: AbortSignal | undefined },
): Promise<readonly string[]> {
  const call = { limitMs: LIMIT_MS, maxBytes: MAX_BYTES, signal };
  const asked = [
    ["diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", base, tip],
    ["diff-files", "-z", "--name-only", "--no-ext-diff", "--ignore-submodules=all"],
    ["ls-files", "-z", "--others", "--exclude-standard"],
  ];
  const answers = await Promise.all(asked.map((args) => git.run(args, call)));
  return [...new Set(answers.flatMap(({ stdout }) => stdout.toString("utf8").split("\0")))].filter(
    (path) => path !== "",
  );
}
