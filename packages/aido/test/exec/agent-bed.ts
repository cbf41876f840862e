import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AgentDriver } from "./agent-driver.ts";
import { bedOn, type ExecBed } from "./exec-bed.ts";

export interface AgentBed extends AsyncDisposable {
  bed: ExecBed<AgentDriver>;
  workdir: string;
}

/** The real supervisor, with a directory of this machine as its workdir. Ends with all it started. */
export async function openAgentBed(options: { outputBytes?: number } = {}): Promise<AgentBed> {
  const workdir = await mkdtemp(join(tmpdir(), "aido-work-"));
  const user = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
  const bed = await bedOn(await AgentDriver.open(), { ...options, workdir, user });
  return {
    bed,
    workdir,
    [Symbol.asyncDispose]: async () => {
      try {
        if (bed.driver.isRunning) await endAll(bed);
      } finally {
        await bed[Symbol.asyncDispose]();
        await rm(workdir, { recursive: true, force: true });
      }
    },
  };
}

/** Outside a sandbox nothing dies with its supervisor, so that one is asked to end what it started. */
async function endAll(bed: ExecBed<AgentDriver>): Promise<void> {
  await bed
    .newHost()
    .supervisors.get(await bed.record())
    .shutdown(0);
  await bed.driver.ended();
}
