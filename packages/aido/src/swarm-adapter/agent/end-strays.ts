import { readdir, readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

/** In the environment of all that an agent starts, unless it hides. */
export const RUN_VARIABLE = "AIMI_AGENT_RUN";

/** The adapter's parent in a sandbox: it takes on all that lost its own parent, and has nobody but us to care for. */
const SHEPHERD = "aido-agent";
const MOST_ROUNDS = 200;
const ROUND_MS = 5;

interface Process {
  readonly parent: number;
  readonly command: string;
  readonly isDead: boolean;
}

/**
 * Ends what an agent has left behind, wherever it hides: all that descends from the adapter's parent and not from the
 * adapter, whose own children are its git and agents that work. Where somebody else is the parent only what has the run's
 * mark is ended. Gives how many are left.
 */
export async function endStrays(run?: string): Promise<number> {
  let left: readonly number[] = [];
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    const before = left.length;
    left = await findStrays(run);
    if (left.length === 0) return 0;
    // Stopped first, so that none makes others while some are ended.
    const isSettled = round > 0 && left.length <= before;
    for (const pid of left) signal(pid, isSettled ? "SIGKILL" : "SIGSTOP");
    if (isSettled) await sleep(ROUND_MS);
  }
  return left.length;
}

async function findStrays(run: string | undefined): Promise<readonly number[]> {
  const processes = await readProcesses();
  const living = [...processes].filter(([, { isDead }]) => !isDead).map(([pid]) => pid);
  const shepherd = process.ppid;
  if (processes.get(shepherd)?.command.startsWith(SHEPHERD) === true) {
    return living.filter((pid) => isBelow(processes, pid, shepherd) && !isBelow(processes, pid, process.pid));
  }
  if (run === undefined) return [];
  const marks = await Promise.all(living.map((pid) => hasMark(pid, run)));
  return living.filter((_, index) => marks[index]);
}

/** Itself is not below it, unless it is the adapter: that is its own. */
function isBelow(processes: ReadonlyMap<number, Process>, pid: number, root: number): boolean {
  if (pid === root) return root === process.pid;
  // Read one after the other, parents may seem to go in a circle.
  for (let at = pid, count = 0; count <= processes.size; count += 1) {
    const parent = processes.get(at)?.parent ?? 0;
    if (parent === root) return true;
    if (parent === 0) return false;
    at = parent;
  }
  return false;
}

async function readProcesses(): Promise<ReadonlyMap<number, Process>> {
  const names = (await readdir("/proc").catch(() => [])).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    names.map(async (name) => [Number(name), await readProcess(name)] as const),
  );
  return new Map(found.filter((entry): entry is [number, Process] => entry[1] !== undefined));
}

/** `pid (command) state parent …`, where the command may hold anything. */
async function readProcess(name: string): Promise<Process | undefined> {
  const text = await readFile(`/proc/${name}/stat`, "latin1").catch(() => "");
  const end = text.lastIndexOf(")");
  if (end < 0) return undefined;
  const [state = "", parent = ""] = text.slice(end + 2).split(" ");
  const command = text.slice(text.indexOf("(") + 1, end);
  return { parent: Number(parent), command, isDead: state === "Z" || state === "X" };
}

async function hasMark(pid: number, run: string): Promise<boolean> {
  const environment = await readFile(`/proc/${pid}/environ`, "utf8").catch(() => "");
  return environment.split("\0").includes(`${RUN_VARIABLE}=${run}`);
}

function signal(pid: number, name: "SIGSTOP" | "SIGKILL"): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended meanwhile.
  }
}
