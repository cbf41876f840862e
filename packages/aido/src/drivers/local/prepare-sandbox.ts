import { chownSync, lstatSync, mkdirSync } from "node:fs";
import type { ContainerSpec } from "../../core/driver/driver.ts";
import { nameFiles, toHostname, writeReadable } from "./etc-files.ts";
import { giveToUser } from "./give-to-user.ts";
import { hostUser, isHostUser } from "./host-user.ts";
import type { Machine } from "./machine.ts";
import type { SandboxPaths } from "./sandbox-paths.ts";
import type { SandboxState } from "./sandbox-state.ts";

const DEFAULT_USER = { uid: 1000, gid: 1000 };

/** Makes the directories of a sandbox and hands what it sees to its user. Nothing is started. */
export async function prepareSandbox(
  spec: ContainerSpec,
  paths: SandboxPaths,
  machine: Pick<Machine, "isRoot" | "userNamespaces">,
): Promise<SandboxState> {
  const hostUid = machine.isRoot ? (ownerOf(paths.work) ?? hostUser(paths.directory)) : undefined;
  const user =
    machine.userNamespaces || hostUid === undefined
      ? (spec.user ?? DEFAULT_USER)
      : { uid: hostUid, gid: hostUid };
  mkdirSync(paths.run, { recursive: true, mode: 0o700 });
  mkdirSync(paths.work, { recursive: true, mode: 0o755 });
  for (const [name, text] of Object.entries(nameFiles(toHostname(spec.name)))) {
    writeReadable(paths.name(name), text);
  }
  if (hostUid !== undefined) {
    chownSync(paths.work, hostUid, hostUid);
    for (const mount of spec.mounts) await giveToUser(mount.source, hostUid);
  }
  const { sandboxId, name, image, network, limits, workdir, mounts, labels } = spec;
  return {
    version: 1,
    ...{ sandboxId, name, image, network, limits, user, hostUid, workdir, mounts, labels },
    createdAt: new Date().toISOString(),
    start: undefined,
    end: undefined,
  };
}

/** Files that came from a committed image have their owner already, another one if the data directory has moved. */
function ownerOf(directory: string): number | undefined {
  const uid = lstatSync(directory, { throwIfNoEntry: false })?.uid;
  return uid !== undefined && isHostUser(uid) ? uid : undefined;
}
