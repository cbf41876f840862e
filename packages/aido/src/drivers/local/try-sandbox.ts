import { closeSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { AidoError } from "@aido/sdk/protocol";
import { capabilities, hostPrograms, userNamespace } from "./bwrap-arguments.ts";
import { openBwrapStatus, readBwrapStatus } from "./bwrap-status.ts";
import { endSandboxProcesses, until } from "./end-processes.ts";
import { launchUser, runLauncher } from "./launch-sandbox.ts";
import { identify, isAlive } from "./process-table.ts";

const LIMIT_MS = 10_000;
const STATUS_FD = 3;

export interface SandboxAttempt {
  bwrap: string;
  agentPath: string;
  /** A directory of the driver's own. */
  root: string;
  /** The user that bubblewrap runs as, when aido is root. */
  user: number | undefined;
  userNamespace: boolean;
}

/** Starts an empty sandbox the way real ones are; resolves to what bubblewrap says when that fails. */
export async function trySandbox(attempt: SandboxAttempt): Promise<string | undefined> {
  // The name's dot keeps it out of the list of sandboxes.
  const directory = mkdtempSync(join(attempt.root, ".try-"));
  try {
    return await tryIn(directory, attempt);
  } catch (thrown) {
    if (thrown instanceof AidoError && thrown.code === "CONTAINER_START_FAILED") return thrown.message;
    throw thrown;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function tryIn(directory: string, attempt: SandboxAttempt): Promise<string | undefined> {
  const log = join(directory, "log");
  const status = join(directory, "status");
  const command = [
    ...["launch", "--log", log, "--fds", "1", ...launchUser(attempt.user, attempt.userNamespace)],
    ...["--", attempt.bwrap, "--json-status-fd", `${STATUS_FD}`],
    ...(attempt.userNamespace ? userNamespace({ uid: 1000, gid: 1000 }) : []),
    ...["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net"],
    ...[...capabilities(attempt.userNamespace), ...hostPrograms()],
    ...["--proc", "/proc", "--dev", "/dev", "--", "/usr/bin/true"],
  ];
  const descriptor = openBwrapStatus(status);
  try {
    await waitFor(await runLauncher(attempt.agentPath, command, [descriptor]), status);
  } finally {
    closeSync(descriptor);
  }
  if (readBwrapStatus(status)?.exitCode === 0) return undefined;
  return readFileSync(log, "utf8").trim() || "it ended without a word";
}

/** bubblewrap is nobody's child, so its end is looked for. */
async function waitFor(monitor: number, status: string): Promise<void> {
  const started = identify(monitor);
  if (started === undefined || (await until(() => !isAlive(started), LIMIT_MS))) return;
  const child = identify(readBwrapStatus(status)?.childPid ?? monitor);
  if (child !== undefined) await endSandboxProcesses(child, 0);
  // Slowness is no refusal: nothing follows from it.
  throw new AidoError("RUNTIME_UNAVAILABLE", `bubblewrap did not end within ${LIMIT_MS} ms`);
}
