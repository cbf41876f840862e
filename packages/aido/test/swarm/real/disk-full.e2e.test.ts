import { execFileSync } from "node:child_process";
import { closeSync, existsSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parseState } from "../../../src/core/swarm/state/parse-state.ts";
import { storyJson } from "../../../src/core/swarm/testing/task-file-text.ts";
import { RealSwarm } from "./real-swarm.ts";
import { type Asked, Gate, type Step } from "./scripted-model.ts";

/** Names that are told to the host: more than what is left of a block when a disk is full. */
const MANY = "for i in $(seq 200); do echo x > $(printf 'part-%0200d' $i).txt; done";

function writing(gate?: Gate) {
  return async ({ step }: Asked): Promise<Step> => {
    await gate?.pass();
    return step === 0 ? { tool: "Bash", input: { command: MANY, description: "Write" } } : { text: "Done." };
  };
}

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
    script: writing(),
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
  const gate = new Gate();
  await using swarm = await RealSwarm.make({ tasks: { cart: [storyJson("US-001")] }, script: writing(gate) });
  using disk = new SmallDisk(swarm.git.project);
  await using running = swarm.start("swarm", "--all", ...swarm.options);
  await gate.reached;
  disk.fill();
  gate.open();
  const { code, stdout, stderr } = await running.end();
  expect(code).toBe(1);
  expect(stdout).toMatch(/^cart-\S+ +\| failed: /m);
  expect(stderr).toContain("no space left on device");
  parseState(Buffer.from(swarm.read(".aimi/swarm-state.json")), "swarm-state.json");
  disk.free();
  expect((await swarm.aido("swarm", "status")).stdout).toMatch(/ failed +0\/1 /);
  const resumed = await swarm.aido("swarm", "resume");
  expect([resumed.code, swarm.statuses("cart")], resumed.stdout).toEqual([0, ["completed"]]);
  expect(swarm.storiesAtOrigin("cart")).toEqual({ "US-001": "completed" });
  const names = swarm.git.git(swarm.git.origin, "ls-tree", "--name-only", "feat/cart");
  expect(names.match(/^part-/gm)).toHaveLength(200);
  expect(await swarm.aido("swarm", "cleanup")).toMatchObject({ code: 0 });
});
