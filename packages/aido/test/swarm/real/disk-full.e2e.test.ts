import { execFileSync } from "node:child_process";
import { closeSync, existsSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseState } from "../../../src/core/swarm/state/parse-state.ts";
import { storyJson } from "../../../src/core/swarm/testing/task-file-text.ts";
import { makeWorkerImage } from "../workers-bed.ts";
import { RealSwarm } from "./real-swarm.ts";
import { shellWorker } from "./shell-worker.ts";

let made: Awaited<ReturnType<typeof makeWorkerImage>>;
beforeAll(async () => {
  made = await makeWorkerImage();
});
afterAll(async () => {
  await made?.[Symbol.asyncDispose]();
});

/** The project on a disk of its own, which is small. */
class SmallDisk implements Disposable {
  readonly #project: string;

  constructor(project: string) {
    this.#project = project;
    renameSync(project, `${project}-before`);
    execFileSync("mkdir", [project]);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=8m", "tmpfs", project]);
    execFileSync("cp", ["-a", `${project}-before/.`, project]);
  }

  /** Until not one more byte goes on it. */
  fill(): void {
    const file = openSync(join(this.#project, "filler"), "w");
    try {
      for (const size of [65_536, 1]) {
        try {
          for (;;) writeSync(file, Buffer.alloc(size));
        } catch (thrown) {
          expect(thrown).toMatchObject({ code: "ENOSPC" });
        }
      }
    } finally {
      closeSync(file);
    }
  }

  free(): void {
    rmSync(join(this.#project, "filler"));
  }

  [Symbol.dispose](): void {
    execFileSync("umount", ["--lazy", this.#project]);
  }
}

test("a full disk is told before anything is made, and nothing is left of the attempt", async () => {
  await using swarm = await RealSwarm.make({
    tasks: { cart: [storyJson("US-001")] },
    image: made.image,
    ...shellWorker("story US-001 in_progress; story US-001 completed; done_"),
  });
  using disk = new SmallDisk(swarm.git.project);
  disk.fill();
  const full = await swarm.aido("swarm", "--all", ...swarm.options);
  expect(full).toMatchObject({
    code: 8,
    stdout: "",
    stderr: expect.stringContaining("No space left on the disk"),
  });
  expect(await swarm.containers()).toEqual([]);
  expect(existsSync(join(swarm.git.project, ".aimi/swarm-state.json"))).toBe(false);
  disk.free();
  const { code } = await swarm.aido("swarm", "--all", ...swarm.options);
  expect([code, swarm.statuses("cart")]).toEqual([0, ["completed"]]);
  expect(await swarm.aido("swarm", "cleanup")).toMatchObject({ code: 0 });
});

test("a disk that becomes full fails the worker that writes to it, says so, and leaves a state to go on from", {
  timeout: 90_000,
}, async () => {
  const much = "yes 0123456789012345678901234567890123456789 | head -c 3000000 >&2";
  await using swarm = await RealSwarm.make({
    tasks: { cart: [storyJson("US-001")] },
    image: made.image,
    ...shellWorker(`story US-001 in_progress; go; ${much}; story US-001 completed; done_`),
  });
  const letGo = () => swarm.docker("exec", swarm.worker("cart"), "touch", "/tmp/go");
  using disk = new SmallDisk(swarm.git.project);
  await using running = swarm.start("swarm", "--all", ...swarm.options);
  await running.until("US-001 in progress");
  disk.fill();
  await letGo();
  const { code, stdout, stderr } = await running.end();
  expect(code).toBe(1);
  expect(stdout).toMatch(/^cart-\S+ +\| failed: /m);
  expect(stderr).toContain("no space left on device");
  parseState(Buffer.from(swarm.read(".aimi/swarm-state.json")), "swarm-state.json");
  disk.free();
  expect((await swarm.aido("swarm", "status")).stdout).toMatch(/ failed +0\/1 /);
  await using resumed = swarm.start("swarm", "resume");
  await resumed.until("US-001 in progress");
  await letGo();
  expect([(await resumed.end()).code, swarm.statuses("cart")]).toEqual([0, ["completed"]]);
  expect(await swarm.aido("swarm", "cleanup")).toMatchObject({ code: 0 });
});
