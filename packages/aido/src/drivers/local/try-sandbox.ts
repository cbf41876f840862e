import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { AidoError } from "@aido/sdk/protocol";
import { capabilities, hostPrograms, userNamespace } from "./bwrap-arguments.ts";
import { launchUser } from "./launch-sandbox.ts";

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
  const log = join(directory, "log");
  try {
    const command = [
      ...["launch", "--log", log, "--fds", "1", ...launchUser(attempt.user, attempt.userNamespace)],
      ...["--", attempt.bwrap, "--json-status-fd", `${STATUS_FD}`],
      ...(attempt.userNamespace ? userNamespace({ uid: 1000, gid: 1000 }) : []),
      ...["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net"],
      ...[...capabilities(attempt.userNamespace), ...hostPrograms()],
      ...["--proc", "/proc", "--dev", "/dev", "--", "/usr/bin/true"],
    ];
    const { status, complaint } = await runToEnd(attempt.agentPath, command);
    if (/"exit-code":\s*0\b/.test(status)) return undefined;
    return complaint || readFileSync(log, "utf8").trim() || "it ended without a word";
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** The launcher ends at once; bubblewrap, which nobody waits for, holds the status pipe until it ends. */
function runToEnd(
  program: string,
  command: readonly string[],
): Promise<{ status: string; complaint: string }> {
  return new Promise((resolve, reject) => {
    const launcher = spawn(program, command, {
      cwd: "/",
      env: {},
      stdio: ["ignore", "ignore", "pipe", "pipe"],
    });
    const pipes = [launcher.stdio[STATUS_FD], launcher.stderr];
    // Slowness is no refusal: nothing follows from it.
    const timer = setTimeout(() => {
      for (const pipe of pipes) pipe?.destroy();
      reject(new AidoError("RUNTIME_UNAVAILABLE", `bubblewrap did not end within ${LIMIT_MS} ms`));
    }, LIMIT_MS);
    const texts = ["", ""];
    pipes.forEach((pipe, index) => {
      pipe?.on("data", (data: Buffer) => {
        texts[index] += data.toString("utf8");
      });
    });
    launcher.once("error", (error) => {
      clearTimeout(timer);
      reject(error);
    });
    launcher.once("close", () => {
      clearTimeout(timer);
      resolve({ status: texts[0] ?? "", complaint: (texts[1] ?? "").trim() });
    });
  });
}
