import { randomBytes } from "node:crypto";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ResourceLimits } from "@aido/sdk/protocol";
import type { ContainerNetwork, Mount } from "../../core/driver/driver.ts";
import type { ProcessIdentity } from "./process-table.ts";

/** Everything that the next aido process has to know about a sandbox, in `state.json` of its directory. */
export interface SandboxState {
  version: 1;
  sandboxId: string;
  name: string;
  image: string;
  network: ContainerNetwork;
  limits: ResourceLimits;
  /** As seen inside; the host's number itself where it was made without a user namespace. */
  user: { uid: number; gid: number };
  /** The host's number for that user; undefined when it is the user that runs aido. */
  hostUid: number | undefined;
  workdir: string;
  mounts: readonly Mount[];
  labels: Readonly<Record<string, string>>;
  createdAt: string;
  /** The last start; its end is read from bubblewrap's status file or, once seen, from `end`. */
  start: SandboxStart | undefined;
  end: SandboxEnd | undefined;
}

export interface SandboxStart {
  startedAt: string;
  bootId: string;
  /** Without one, the supervisor is root and only what it runs is the sandbox's user. */
  userNamespace: boolean;
  /** First process of the sandbox's process namespace; undefined while the start is on its way. */
  supervisor: ProcessIdentity | undefined;
  /** bubblewrap itself, which outlives the supervisor by as long as it takes to note how that ended. */
  monitor?: ProcessIdentity | undefined;
}

export interface SandboxEnd {
  /** Undefined when nothing was left to tell it, after a power cut for instance. */
  exitCode: number | undefined;
  outOfMemory: boolean;
  finishedAt: string;
}

export function readState(directory: string): SandboxState | undefined {
  let text: string;
  try {
    text = readFileSync(join(directory, "state.json"), "utf8");
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw thrown;
  }
  try {
    return JSON.parse(text) as SandboxState;
  } catch {
    return undefined; // cut short by a power loss; what is left can still be removed
  }
}

/** In one step, so that a reader never sees half a file and kill -9 leaves the old or the new one. */
export function writeState(directory: string, state: SandboxState): void {
  const temporary = join(directory, `.state-${randomBytes(6).toString("hex")}`);
  writeFileSync(temporary, `${JSON.stringify(state)}\n`, { mode: 0o600 });
  renameSync(temporary, join(directory, "state.json"));
}
