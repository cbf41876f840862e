import { lchown, lstat, readdir } from "node:fs/promises";
import { join } from "node:path";

/**
 * Hands a tree to the sandbox's user. A tree whose top is theirs already has been in a sandbox's hands: what lies
 * below is hostile, and the host stays out of it.
 */
export async function giveToUser(path: string, uid: number): Promise<void> {
  if ((await lstat(path)).uid !== uid) await giveTree(path, uid);
}

/** The top last, so that an interrupted run starts over. */
async function giveTree(path: string, uid: number): Promise<void> {
  if ((await lstat(path)).isDirectory()) {
    for (const name of await readdir(path)) await giveTree(join(path, name), uid);
  }
  await lchown(path, uid, uid);
}
