import { lstatSync } from "node:fs";
import { lchown, lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Mount } from "../../core/driver/driver.ts";

type User = { readonly uid: number; readonly gid: number };

/**
 * Hands what is mounted writable to the sandbox's user. A tree whose top is already theirs has been in a sandbox's
 * hands: what lies below is hostile, and the host stays out of it.
 */
export async function giveMounts(mounts: readonly Mount[], user: User): Promise<void> {
  if (process.getuid?.() !== 0) return;
  const given = mounts.filter(({ source, readOnly }) => !readOnly && lstatSync(source).uid !== user.uid);
  await Promise.all(given.map(({ source }) => giveTree(source, user)));
}

/** The top last, so that an interrupted run starts over. */
async function giveTree(path: string, user: User): Promise<void> {
  if ((await lstat(path)).isDirectory()) {
    for (const name of await readdir(path)) await giveTree(join(path, name), user);
  }
  await lchown(path, user.uid, user.gid);
}
