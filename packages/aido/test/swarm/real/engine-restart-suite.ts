import { expect, test } from "vitest";
import type { OwnEngine } from "../../backends/own-engine.ts";
import { until } from "../../contract/driver-backend.ts";
import { RealSwarm, twoStories } from "./real-swarm.ts";
import { Gate, writing } from "./scripted-model.ts";

/** What an engine's restart means to the workers on it. It has the given settings and some more afterwards. */
export function engineRestartSuite(ownEngine: () => OwnEngine, settings: object): void {
  test.each([
    [
      "that keeps its containers lets Claude Code go on, and their orchestrator follows them to their end",
      true,
    ],
    [
      "that ends its containers has stopped them, with their work at origin and told; resume does the rest",
      false,
    ],
  ])("S1-71 an engine restarted %s", { timeout: 150_000 }, async (_, keeps) => {
    const engine = ownEngine();
    await engine.configure({ ...settings, "live-restore": keeps });
    const gate = new Gate();
    const held = new Set<string>();
    const bothWork = new Gate();
    await using swarm = await RealSwarm.make({
      tasks: { cart: twoStories(), login: twoStories() },
      host: engine.host,
      script: writing(({ branch, story }) => {
        if (story !== "US-002") return false;
        if (held.add(branch).size === 2) void bothWork.pass();
        return true;
      }, gate),
    });
    const names = ["cart", "login"];
    await using running = swarm.start("swarm", "--all", ...swarm.options);
    await bothWork.reached;
    await engine.stop();
    const isKnown = () => keeps || swarm.statuses(...names).every((status) => status === "stopped");
    await until("what became of them is written", isKnown, 60_000);
    const down = await swarm.aido("swarm", "status");
    expect(down.code).toBe(0);
    const known = new RegExp(`^aimi-swarm-cart-\\S+ .* ${keeps ? "running" : "stopped"} +1/2`, "m");
    expect(down.stdout).toMatch(known);
    expect(down.stderr.includes("Docker is not running")).toBe(keeps);
    await engine.restart();
    gate.open();
    const { code, stdout } = await running.end();
    const statuses = keeps ? ["completed", "completed"] : ["stopped", "stopped"];
    expect([code, swarm.statuses(...names)], stdout).toEqual([keeps ? 0 : 1, statuses]);
    if (!keeps) {
      expect(stdout).toMatch(/^cart-\S+ +\| stopped: The worker was stopped by SIGTERM, .* 1 of 2 stories/m);
      for (const name of names) expect(swarm.atOrigin(name, "US-002.txt")).toBe("US-002\n");
      const resumed = await swarm.aido("swarm", "resume");
      expect([resumed.code, swarm.statuses(...names)], resumed.stdout).toEqual([
        0,
        ["completed", "completed"],
      ]);
    }
    for (const name of names) {
      expect(swarm.storiesAtOrigin(name)).toEqual({ "US-001": "completed", "US-002": "completed" });
      expect(swarm.atOrigin(name, "US-001.txt")).toBe("US-001\n");
    }
  });
}
