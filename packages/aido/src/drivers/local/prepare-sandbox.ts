import { mkdir } from "node:fs/promises";
import type { ContainerSpec } from "../../core/driver/driver.ts";
import { toHostname, writeEtc } from "./etc-files.ts";
import { giveToUser } from "./give-to-user.ts";
import { hostUser } from "./host-user.ts";
import type { SandboxPaths } from "./sandbox-paths.ts";
import type { SandboxState } from "./sandbox-state.ts";

const DEFAULT_USER = { uid: 1000, gid: 1000 };

/** Makes the directories of a sandbox and hands what it sees to its user. Nothing is started. */
export async function prepareSandbox(
  spec: ContainerSpec,
  paths: SandboxPaths,
  isRoot: boolean,
): Promise<SandboxState> {
  const user = spec.user ?? DEFAULT_USER;
  const hostUid = isRoot ? hostUser(paths.directory) : undefined;
  await mkdir(paths.run, { recursive: true, mode: 0o700 });
  await mkdir(paths.work, { recursive: true, mode: 0o755 });
  await writeEtc(paths.etc, { hostname: toHostname(spec.name), home: spec.workdir, ...user });
  if (hostUid !== undefined) {
    for (const path of [paths.work, paths.etc, ...spec.mounts.map((mount) => mount.source)]) {
      await giveToUser(path, hostUid);
    }
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
