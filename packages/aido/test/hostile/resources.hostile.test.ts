import { statSync } from "node:fs";
import { join } from "node:path";
import { isAidoError } from "@aido/sdk/protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { IS_CI } from "../backends/is-ci.ts";
import { until } from "../contract/driver-backend.ts";
import { DRIVERS, Range } from "./range.ts";

const MIB = 1024 * 1024;
/** What this process may grow by while a sandbox floods it; a flood that were kept in memory would be many times this. */
const FLAT_BYTES = 96 * MIB;
const FLOOD_BYTES = 400 * MIB;

const HOG = "x = []\nwhile True: x.append(bytearray(1 << 20))";
const HOG_BY_CHILDREN = `
import os, time
for _ in range(8):
    if os.fork() == 0:
        x = []
        while True:
            try: x.append(bytearray(1 << 20))
            except MemoryError: time.sleep(0.01)
for _ in range(8):
    os.wait()
os._exit(0)
`;
const FILL_MEMORY_DIRECTORIES = `
import os
for folder in ("/dev/shm", "/tmp", "/run", "/var/tmp"):
    try:
        with open(os.path.join(folder, "fill"), "wb") as f:
            for _ in range(2048): f.write(bytes(1 << 20))
    except OSError: pass
`;
const FLOOD = `
import os, sys
block = b"x" * 65536
for i in range(${FLOOD_BYTES / 65536 / 2}):
    os.write(1, block)
    os.write(2, block)
`;
const ENDLESS = "import os\nwhile True: os.write(1, b'y' * 65536)";
const FILL_DISK = `
import time
with open("big", "wb") as f:
    while True:
        f.write(bytes(1 << 20))
        f.flush()
        time.sleep(0.03)
`;
const FILL_INODES = `
import os
for i in range(8000): os.close(os.open("f%d" % i, os.O_CREAT | os.O_WRONLY))
os.mkdir("deep")
os.chdir("deep")
for i in range(1500):
    os.mkdir("d")
    os.chdir("d")
print("made")
`;
const HUGE_ENVIRONMENT = `
import os
lines = os.environ["LINES_OF_TEXT"]
print(len(lines.split(chr(10))))
`;
const OPEN_ALL = `
import os
held = []
try:
    while True: held.append(os.open("/dev/null", os.O_RDONLY))
except OSError as error: print(error.errno, len(held) < 5000)
`;

for (const driver of DRIVERS) {
  describe(`attacks on resources from ${driver}`, () => {
    let range: Range;
    beforeAll(async () => {
      range = await Range.open(driver);
    });
    afterAll(async () => {
      await range[Symbol.asyncDispose]();
    });
    const enforced = async () => (await range.aido.driver.capabilities()).enforced;

    test("S0-46 a memory hog ends as out of memory, and the sandbox answers", async ({ skip }) => {
      skip(!IS_CI && !(await enforced()).memory, "memory is not enforced here");
      await using target = await range.sandbox({ limits: { memoryBytes: 64 * MIB } });
      expect((await target.attack(HOG)).info).toMatchObject({ status: "out_of_memory", exitCode: 137 });
      await target.answers();
    });

    test("children that eat all memory leave the supervisor alive or the sandbox told as ended", async ({
      skip,
    }) => {
      skip(!IS_CI && !(await enforced()).memory, "memory is not enforced here");
      await using target = await range.sandbox({ limits: { memoryBytes: 64 * MIB } });
      const { id } = await target.start(HOG_BY_CHILDREN, { timeoutMs: 3_000, killGraceMs: 100 });
      await target.end(id);
      await answersOrHasEnded(range, target);
    });

    test("directories in memory are no way around the memory limit", async ({ skip }) => {
      skip(!IS_CI && !(await enforced()).memory, "memory is not enforced here");
      await using target = await range.sandbox({ limits: { memoryBytes: 64 * MIB } });
      await using bystander = await range.sandbox();
      const { id } = await target.start(FILL_MEMORY_DIRECTORIES, { timeoutMs: 5_000, killGraceMs: 100 });
      await target.end(id).catch((error: unknown) => {
        if (!isAidoError(error)) throw error;
      });
      const { memoryBytes } = await range.aido.driver.usage(target.id).catch(() => ({ memoryBytes: 0 }));
      expect(memoryBytes).toBeLessThanOrEqual(64 * MIB);
      await bystander.answers();
    });

    test("a flood on both outputs is recorded whole while this process stays as small as it was", async () => {
      await using target = await range.sandbox();
      const before = process.memoryUsage.rss();
      let highest = before;
      const timer = setInterval(() => {
        highest = Math.max(highest, process.memoryUsage.rss());
      }, 20);
      try {
        const { id } = await target.start(FLOOD);
        const info = await range.aido.execs.wait(target.id, id, AbortSignal.timeout(60_000));
        expect(info).toMatchObject({
          exitCode: 0,
          stdoutBytes: FLOOD_BYTES / 2,
          stderrBytes: FLOOD_BYTES / 2,
        });
        for (const stream of ["stdout", "stderr"]) {
          const file = join(range.root, "data", "sandboxes", target.id, "execs", id, stream);
          expect(statSync(file).size).toBe(FLOOD_BYTES / 2);
        }
      } finally {
        clearInterval(timer);
      }
      expect(highest - before).toBeLessThan(FLAT_BYTES);
    });

    test("endless output is cut off at its limit", async () => {
      await using target = await range.sandbox({ limits: { outputBytes: 3 * MIB } });
      const { info } = await target.attack(ENDLESS);
      expect(info).toMatchObject({ status: "output_limit", stdoutBytes: 3 * MIB });
      await target.answers();
    });

    test("S3-33 who fills the disk beyond its limit is stopped, and told so", async () => {
      await using target = await range.sandbox({ limits: { diskBytes: 8 * MIB } });
      await target.start(FILL_DISK);
      const ended = await range.aido.sandboxes.untilEnded(target.id, AbortSignal.timeout(60_000));
      expect(ended).toMatchObject({ state: "stopped", endReason: "disk_full" });
    });

    test("8000 files and 1500 nested directories are listed and removed", async () => {
      await using target = await range.sandbox();
      expect((await target.attack(FILL_INODES)).stdout).toBe("made\n");
      const entries = await range.aido.files.list(target.id, ".", { recursive: true });
      expect(entries).toHaveLength(9_501);
      await range.aido.files.remove(target.id, "deep");
      await target.answers();
    });

    test("an environment of 100000 lines arrives whole, a larger one is refused", async () => {
      await using target = await range.sandbox();
      const lines = "\n".repeat(99_999);
      const { stdout } = await target.attack(HUGE_ENVIRONMENT, { env: { LINES_OF_TEXT: lines } });
      expect(stdout).toBe("100000\n");
      const env = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`BIG${i}`, lines]));
      await expect(target.start("", { env })).rejects.toMatchObject({ code: "ARGUMENTS_TOO_LONG" });
      await target.answers();
    });

    test("descriptors run out for who opens them all", async () => {
      await using target = await range.sandbox({ limits: { openFiles: 256 } });
      expect((await target.attack(OPEN_ALL)).stdout).toBe("24 True\n");
      await target.answers();
    });

    test("256 commands at once, none of which ends, leave room for destroy", async () => {
      await using target = await range.sandbox({ limits: { pids: 1000 } });
      const started = await Promise.allSettled(
        Array.from({ length: 300 }, () => target.start("", { argv: ["sleep", "600"] })),
      );
      const refused = started.flatMap((each) => (each.status === "rejected" ? [each.reason as unknown] : []));
      expect(refused.length).toBeGreaterThan(0);
      for (const error of refused) expect(error).toSatisfy((each) => isAidoError(each));
      await until("they run", async () => (await range.aido.sandboxes.stats(target.id)).pids > 200);
    });
  });
}

/** What memory runs out for is the kernel's choice; what counts is that it is told truly. */
async function answersOrHasEnded(
  range: Range,
  target: { id: string; answers(): Promise<void> },
): Promise<void> {
  const container = await range.aido.driver.inspect(target.id);
  if (container?.state === "running") await target.answers();
  else
    expect(await range.aido.sandboxes.get(target.id)).toMatchObject({
      state: "stopped",
      endReason: "out_of_memory",
    });
}
