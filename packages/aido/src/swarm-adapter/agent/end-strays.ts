import { readdir, readFile } from "node:fs/promises";

/** In the environment of all that an agent starts, unless it hides. */
export const RUN_VARIABLE = "AIMI_AGENT_RUN";

/** Ends processes of a run that left its process group, as daemons do. */
export async function endStrays(run: string): Promise<void> {
  const mark = `${RUN_VARIABLE}=${run}`;
  const ids = await readdir("/proc").catch(() => []);
  for (const id of ids.filter((name) => /^\d+$/.test(name))) {
    const environment = await readFile(`/proc/${id}/environ`, "utf8").catch(() => "");
    if (!environment.split("\0").includes(mark)) continue;
    try {
      process.kill(Number(id), "SIGKILL");
    } catch {
      // It has ended meanwhile.
    }
  }
}
