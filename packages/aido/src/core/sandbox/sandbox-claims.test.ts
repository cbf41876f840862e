import { describe, expect, test } from "vitest";
import { HandClock } from "../../../test/exec/hand-clock.ts";
import { fakeIdentity } from "../../../test/processes/fake-presence.ts";
import { MemoryStore } from "../../stores/memory/memory-store.ts";
import { ClockJumps } from "../clock-jumps.ts";
import { SandboxClaims } from "./sandbox-claims.ts";

describe("a claim", () => {
  test("of a process that is at work is nobody's leftover, also when the clock is set ahead", async () => {
    const bed = claimsBed();
    let end: () => void = () => undefined;
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const pulling = bed.of("p1").hold("box1", "create", () => ended);
    await expect.poll(() => bed.store.claims.get("box1")).toBeDefined();
    expect(await bed.left("p1")).toEqual([]);
    bed.clock.set(new Date(bed.clock.now().getTime() + 3_600_000));
    // To itself, to a neighbour that sees it live, and to one that knows only its claim.
    expect(await bed.left("p1")).toEqual([]);
    expect(await bed.left("neighbour")).toEqual([]);
    expect(await bed.left("elsewhere")).toEqual([]);
    end();
    await pulling;
    expect(await bed.store.claims.list()).toEqual([]);
  });

  test("that could not be given back is known as a leftover by the process that had it", async () => {
    const bed = claimsBed();
    const { release } = bed.store.claims;
    bed.store.claims.release = () => Promise.reject(new Error("no store"));
    await expect(bed.of("p1").hold("box1", "launch", async () => undefined)).rejects.toThrow("no store");
    bed.store.claims.release = release;
    expect(await bed.left("p1")).toEqual(["box1"]);
  });

  test("of a process that cannot be asked is a leftover once it is over", async () => {
    const bed = claimsBed();
    const until = new Date(bed.clock.now().getTime() + 60_000);
    await bed.store.claims.take(
      { sandboxId: "box1", holder: "p9#1", purpose: "create", until },
      bed.clock.now(),
    );
    expect(await bed.left("p1")).toEqual([]);
    await bed.clock.advance(60_000);
    expect(await bed.left("p1")).toEqual(["box1"]);
  });
});

function claimsBed() {
  const [store, clock] = [new MemoryStore(), new HandClock()];
  const jumps = new ClockJumps(clock, () => clock.passedMs());
  const of = (name: string) => {
    const identity = fakeIdentity(name);
    const isAlive = (holder: string) =>
      identity.isAlive(holder) || (name === "neighbour" && holder.startsWith("p1#"));
    return new SandboxClaims({ store, clock, jumps, processes: { ...identity, isAlive } });
  };
  return {
    store,
    clock,
    of,
    left: async (name: string) => (await of(name).abandoned()).map(({ sandboxId }) => sandboxId),
  };
}
