import type { Mount } from "../driver/driver.ts";
import { directoryBytes } from "../hostile-files/directory-bytes.ts";
import type { SandboxDeps } from "../sandbox/sandbox-deps.ts";
import type { SandboxRecord } from "../store/store.ts";

/** The host's directories that a sandbox can write; a backend's quota does not cover them. */
export function writableMounts(record: SandboxRecord): readonly Mount[] {
  return record.mounts.filter((mount) => !mount.readOnly);
}

/** Bytes on disk of everything that a sandbox can write: what it has beside its mounts, and those. */
export async function diskUse(
  deps: Pick<SandboxDeps, "driver" | "supervisors">,
  record: SandboxRecord,
  signal: AbortSignal,
): Promise<number> {
  const mounts = writableMounts(record);
  const asked = (path: string) => askSupervisor(deps, record, path, signal);
  const isMounted = mounts.some((mount) => mount.target === record.workdir);
  const own = (await deps.driver.written(record.id, signal)) ?? (isMounted ? 0 : await asked(record.workdir));
  let bytes = own;
  for (const mount of mounts) {
    const { bytes: seen, isWhole } = await directoryBytes(mount.source, signal);
    // What is not ours to read the sandbox's own user may see, and its supervisor goes to any depth.
    bytes += isWhole ? seen : Math.max(seen, await asked(mount.target));
  }
  return bytes;
}

async function askSupervisor(
  { supervisors }: Pick<SandboxDeps, "supervisors">,
  record: SandboxRecord,
  path: string,
  signal: AbortSignal,
): Promise<number> {
  const tool = supervisors.get(record).tool(["du", "/", path], { signal });
  const answer: Uint8Array[] = [];
  for await (const chunk of tool.stdout) answer.push(chunk);
  await tool.done;
  return Number(Buffer.concat(answer).readBigUInt64LE());
}
