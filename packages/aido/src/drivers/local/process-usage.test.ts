import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { processUsage } from "./process-usage.ts";

test("a process that calls itself a line of its status uses as much memory as it does", async () => {
  const rename = "printf '\\rVmRSS:\\t1 kB' > /proc/$$/comm && echo named && read end";
  const child = spawn("sh", ["-c", rename], { stdio: ["pipe", "pipe", "ignore"] });
  const ended = once(child, "close");
  try {
    await once(child.stdout, "data");
    expect((await processUsage(child.pid ?? 0)).memoryBytes).toBeGreaterThan(64 * 1024);
  } finally {
    child.stdin.end();
    await ended;
  }
});
