import { randomBytes } from "node:crypto";
import { posix } from "node:path";
import { AidoError } from "@aido/sdk/protocol";
import type { FileRecord } from "../files/record-reader.ts";
import type { DiskDeps } from "./disk-deps.ts";
import { directoryMember, fileMember } from "./disk-members.ts";

/** What an archive can carry. */
const PLAIN = 0o777;

/**
 * Sets mode and time of a file or directory. The supervisor has tools that write and extract, none that changes an entry
 * in place: so a file is written anew beside itself and takes its own place. Times of directories stay as they are.
 */
export async function writeAttributes(
  deps: DiskDeps,
  record: FileRecord,
  path: string,
  wanted: { mode: number | undefined; modifiedAt: Date | undefined },
): Promise<void> {
  if (record.type === "directory") return setDirectoryMode(deps, record, path, wanted.mode);
  if (record.type !== "file") throw new AidoError("INVALID_PATH", `${path} is neither file nor directory`);
  const mode = wanted.mode ?? record.mode;
  const content = async function* () {
    const run = await deps.run(["read", "/", path]);
    yield* run.stdout;
    await run.done;
  };
  if (wanted.modifiedAt === undefined) {
    const run = await deps.run(["write", "/", path, mode.toString(8)], { stdin: content(), isChange: true });
    return run.done;
  }
  const place = posix.dirname(path);
  const name = `.aido-${randomBytes(8).toString("hex")}`;
  const member = { name, mode: mode & PLAIN, size: record.size, at: wanted.modifiedAt };
  const stdin = fileMember(member, content());
  await (await deps.run(["untar", "/", place], { stdin, isChange: true })).done;
  const draft = posix.join(place, name);
  try {
    await (await deps.run(["move", "/", draft, path], { isChange: true })).done;
  } catch (thrown) {
    await (await deps.run(["remove", "/", draft], { isChange: true })).done.catch(() => undefined);
    throw thrown;
  }
}

async function setDirectoryMode(
  deps: DiskDeps,
  record: FileRecord,
  path: string,
  mode: number | undefined,
): Promise<void> {
  if (mode === undefined) return;
  if (path === "/") throw new AidoError("FILE_NOT_PERMITTED", "The root stays as it is");
  const at = new Date(Number(record.mtimeNs / 1_000_000n));
  const archive = Buffer.concat([...directoryMember(posix.basename(path), mode & PLAIN, at)]);
  const run = await deps.run(["untar", "/", posix.dirname(path)], { stdin: archive, isChange: true });
  await run.done;
}
