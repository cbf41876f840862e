import { spawn } from "node:child_process";
import { once } from "node:events";

/** None of these programs talks to the world: reading all whom the machine trusts would double the time that each takes to start. */
const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env;

/** A child process whose lines are read as they come; killed for good at the end of the block. */
export function startChild(program: string, args: readonly string[]) {
  const child = spawn(process.execPath, [program, ...args], { env, stdio: ["ignore", "pipe", "inherit"] });
  const lines: string[] = [];
  const waiting = new Set<() => void>();
  let rest = "";
  const wake = () => {
    for (const one of waiting) one();
  };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const parts = (rest + text).split("\n");
    rest = parts.pop() ?? "";
    lines.push(...parts);
    wake();
  });
  const closed = once(child, "close").then(wake);
  const end = async () => {
    child.kill("SIGKILL");
    await closed;
  };
  return {
    lines,
    /** Resolves when so many lines have come; rejects when the child ends before. */
    async until(count: number): Promise<void> {
      while (lines.length < count) {
        if (child.exitCode !== null || child.signalCode !== null) {
          throw new Error(`The child ended after ${lines.length} of ${count} lines`);
        }
        await new Promise<void>((resolve) => waiting.add(resolve));
      }
    },
    get signal() {
      return child.signalCode;
    },
    /** However it ends. */
    ended: closed,
    kill: end,
    [Symbol.asyncDispose]: end,
  };
}
