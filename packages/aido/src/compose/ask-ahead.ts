import { existsSync } from "node:fs";
import type { FirstAnswers } from "../drivers/docker/first-questions.ts";
import { SYSTEM_SOCKET } from "../drivers/docker/system-socket.ts";

const LAUNCHING = ["run", "create"];
/** Commands of `aido swarm` that make containers; without one it is `run`. */
const DRIVING = ["run", "resume"];
/** With any of these the machine's own engine is not asked for, or only the settings tell which one is. */
const LEADING_ELSEWHERE = {
  words: ["local", "--driver=local", "--server", "--help", "-h"],
  variables: ["DOCKER_HOST", "AIDO_DOCKER_HOST", "AIDO_DOCKER_HOSTS", "AIDO_URL", "AIDO_SERVER"],
};

/**
 * Asks the machine's own engine before the command line itself is loaded, when a sandbox is most likely to be launched
 * there: the answer takes as long as the loading does. The settings, read later, decide whether it is of use.
 */
export async function askAhead(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  socketPath = SYSTEM_SOCKET,
): Promise<FirstAnswers | undefined> {
  const { words, variables } = LEADING_ELSEWHERE;
  if (!launches(argv) || argv.some((word) => words.includes(word))) return undefined;
  if (env["AIDO_DRIVER"] === "local" || variables.some((name) => env[name])) return undefined;
  if (!existsSync(socketPath)) return undefined;
  const { askFirst } = await import("../drivers/docker/first-questions.ts");
  const answers = askFirst({ protocol: "http", socketPath });
  // Questions leave with the next turns of the loop.
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  return answers;
}

function launches([first = "", second = "run"]: readonly string[]): boolean {
  if (first === "swarm") return second.startsWith("-") || DRIVING.includes(second);
  return LAUNCHING.includes(first);
}
