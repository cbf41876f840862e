import { AidoError } from "@aido/sdk/protocol";
import type { Remote } from "./remote.ts";
import type { WorkerGit } from "./worker-git.ts";

/** Never by force: commits that others pushed meanwhile stay, and ours stay here. */
export async function pushBranch(
  git: WorkerGit,
  remote: Remote,
  {
    branch,
    tip,
    limitMs,
    signal,
  }: { branch: string; tip: string; limitMs: number; signal?: AbortSignal | undefined },
): Promise<void> {
  const args = [
    "push",
    "--porcelain",
    "--no-verify",
    "--no-signed",
    remote.url,
    `${tip}:refs/heads/${branch}`,
  ];
  const call = { env: remote.env, limitMs, signal, answers: [1] };
  const { code, stdout } = await git.overNetwork(remote, (own) => own.run(args, call));
  if (code === 0) return;
  const refused = /^!\t[^\t]*\t(.*)$/m.exec(stdout.toString("utf8"))?.[1] ?? "it was refused";
  throw new AidoError("GIT_FETCH_FAILED", `origin does not take ${branch}: ${refused}`);
}
