import { spawn } from "node:child_process";
import { AidoError } from "@aido/sdk/protocol";
import { ByteSource } from "./byte-source.ts";
import { gitEnvironment } from "./git-environment.ts";
import type { FileMode } from "./git-objects.ts";
import type { GitRepository } from "./git-repository.ts";
import { type ListedFile, parseTree } from "./parse-git.ts";
import type { SandboxHistory } from "./sandbox-history.ts";
import { tarEnd, tarMember } from "./tar-writer.ts";

/** How the old tree is written back: by the supervisor, as the sandbox's user. */
export interface WorkspaceWriter {
  /** Removes these paths (latin1) with all beneath them, and directories that become empty. */
  prune(paths: readonly string[], signal?: AbortSignal): Promise<void>;
  extract(archive: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<void>;
}

/** Makes the workspace what `commit` has, writing only what differs. `history` must have seen the workspace as it is. */
export async function writeBack(
  history: SandboxHistory,
  commit: string,
  writer: WorkspaceWriter,
  options: { at: Date; signal?: AbortSignal | undefined },
): Promise<void> {
  const { repository, tree } = history;
  const listing = await repository.git(["ls-tree", "-r", "-z", commit], {
    code: "GIT_ROLLBACK_FAILED",
    signal: options.signal,
  });
  const wanted = parseTree(listing);
  const wantedPaths = new Set(wanted.map((file) => file.path));
  const toWrite = wanted.filter((file) => {
    const now = tree.get(file.path);
    return now === undefined || now.id !== file.id || now.mode !== file.mode;
  });
  const toRemove = new Set<string>();
  for (const [path] of tree.files()) if (!wantedPaths.has(path)) toRemove.add(path);
  for (const file of toWrite) for (const path of inTheWayOf(file.path, history)) toRemove.add(path);
  if (toRemove.size > 0) await writer.prune([...toRemove], options.signal);
  if (toWrite.length > 0) await writer.extract(archiveOf(repository, toWrite, options), options.signal);
}

/** What is not kept, such as a pipe or a directory without files, may be where a file or its directory must be. */
function* inTheWayOf(path: string, { known }: SandboxHistory): Generator<string> {
  if (known.get(path)?.type === "directory") yield path;
  for (let at = path.indexOf("/"); at > 0; at = path.indexOf("/", at + 1)) {
    const type = known.get(path.slice(0, at))?.type;
    if (type !== undefined && type !== "directory") yield path.slice(0, at);
  }
}

async function* archiveOf(
  repository: GitRepository,
  files: readonly ListedFile[],
  { at, signal }: { at: Date; signal?: AbortSignal | undefined },
): AsyncGenerator<Uint8Array> {
  let index = 0;
  const ids = files.map((file) => file.id);
  for await (const content of blobs(repository, ids, signal)) {
    const file = files[index++];
    if (file === undefined || repository.isStandIn(content)) continue;
    yield* tarMember(file.path, file.mode as FileMode, content, at);
  }
  yield tarEnd();
}

/** Contents of many blobs from one git process, in order. */
async function* blobs(
  repository: GitRepository,
  ids: readonly string[],
  signal: AbortSignal | undefined,
): AsyncGenerator<Buffer> {
  const child = spawn("git", ["cat-file", "--batch"], {
    env: gitEnvironment(repository.directory),
    cwd: "/",
    stdio: ["pipe", "pipe", "ignore"],
  });
  const stop = () => child.kill("SIGKILL");
  signal?.addEventListener("abort", stop, { once: true });
  child.on("error", () => undefined);
  child.stdin.on("error", () => undefined);
  child.stdin.end(ids.map((id) => `${id}\n`).join(""));
  const ended = () => new AidoError("GIT_ROLLBACK_FAILED", "The history could not be read to its end");
  const source = new ByteSource(child.stdout, ended);
  try {
    for (const id of ids) {
      // `<id> blob <size>\n<content>\n`
      const match = /^([0-9a-f]{40}) blob (\d+)$/.exec(await source.line(200));
      if (match?.[1] !== id) throw ended();
      const content = await source.take(Number(match[2]));
      await source.skip(1);
      yield content;
    }
  } finally {
    signal?.removeEventListener("abort", stop);
    stop();
  }
}
