import { spawn } from "node:child_process";
import { AidoError } from "@aido/sdk/protocol";
import { gitEnvironment } from "./git-environment.ts";
import type { FileMode } from "./git-objects.ts";
import type { GitRepository } from "./git-repository.ts";
import { type ListedFile, parseTree } from "./parse-git.ts";
import { isPlaceholder, type SandboxHistory } from "./sandbox-history.ts";
import { tarEnd, tarMember } from "./tar-writer.ts";

/** How the old tree is written back: by the supervisor, as the sandbox's user. */
export interface WorkspaceWriter {
  /** Removes these paths (latin1) and directories that become empty. */
  prune(paths: readonly string[]): Promise<void>;
  extract(archive: AsyncIterable<Uint8Array>): Promise<void>;
}

/** Makes the workspace what `commit` has, writing only what differs. `history` must have seen the workspace as it is. */
export async function writeBack(
  history: SandboxHistory,
  commit: string,
  writer: WorkspaceWriter,
  signal?: AbortSignal,
): Promise<void> {
  const { repository, tree } = history;
  const wanted = parseTree(
    await repository.git(["ls-tree", "-r", "-z", commit], { code: "GIT_ROLLBACK_FAILED", signal }),
  );
  const wantedPaths = new Set(wanted.map((file) => file.path));
  const toWrite = wanted.filter((file) => {
    const now = tree.get(file.path);
    return now === undefined || now.id !== file.id || now.mode !== file.mode;
  });
  const toRemove = [...tree.files()].map(([path]) => path).filter((path) => !wantedPaths.has(path));
  // A link or file may have to make room for a file of the other kind.
  for (const file of toWrite) {
    const now = tree.get(file.path);
    if (now !== undefined && (now.mode === "120000") !== (file.mode === "120000")) toRemove.push(file.path);
  }
  if (toRemove.length > 0) await writer.prune(toRemove);
  if (toWrite.length > 0) await writer.extract(archiveOf(repository, toWrite, signal));
}

async function* archiveOf(
  repository: GitRepository,
  files: readonly ListedFile[],
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  let index = 0;
  for await (const content of blobs(
    repository,
    files.map((file) => file.id),
    signal,
  )) {
    const file = files[index++];
    if (file === undefined || isPlaceholder(content)) continue;
    yield* tarMember(file.path, file.mode as FileMode, content);
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
  let buffer = Buffer.alloc(0);
  let left = ids.length;
  try {
    for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
      buffer = Buffer.concat([buffer, chunk]);
      for (let blob = takeBlob(buffer); blob !== undefined; blob = takeBlob(buffer)) {
        buffer = buffer.subarray(blob.end);
        left -= 1;
        yield blob.content;
      }
    }
  } finally {
    signal?.removeEventListener("abort", stop);
    stop();
  }
  if (left > 0) throw new AidoError("GIT_ROLLBACK_FAILED", "The history could not be read to its end");
}

/** `<id> blob <size>\n<content>\n`. */
function takeBlob(buffer: Buffer): { content: Buffer; end: number } | undefined {
  const line = buffer.indexOf(10);
  if (line < 0) return undefined;
  const match = /^[0-9a-f]{40} blob (\d+)$/.exec(buffer.toString("latin1", 0, line));
  if (match === null)
    throw new AidoError("GIT_ROLLBACK_FAILED", "The history has an object that is not a file");
  const size = Number(match[1]);
  if (buffer.length < line + 2 + size) return undefined;
  return { content: buffer.subarray(line + 1, line + 1 + size), end: line + 2 + size };
}
