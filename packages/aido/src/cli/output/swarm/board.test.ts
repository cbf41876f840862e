import { expect, test } from "vitest";
import type { SwarmEvent } from "../../../core/swarm/swarm-event.ts";
import { ScriptedSwarm } from "../../testing/scripted-swarm.ts";
import { type Board, EMPTY_BOARD, nextBoard } from "./board.ts";

function boardOf({ events }: { events: readonly SwarmEvent[] }): Board {
  return events.reduce(nextBoard, EMPTY_BOARD);
}

function workerOf(swarm: ScriptedSwarm, name: string) {
  const worker = boardOf(swarm).workers.get(`aimi-swarm-${name}`);
  if (worker === undefined) throw new Error(`no ${name}`);
  return worker;
}

test("a worker has what was told of it last", () => {
  const swarm = new ScriptedSwarm()
    .announce("a", ["one", "two"])
    .state("a", "running")
    .story("a", 1, "completed", "done")
    .usage("a", 3, 100, 20)
    .state("a", "failed", { reason: "out of turns", exitCode: 1, prUrl: "https://x.test/1" });
  expect(workerOf(swarm, "a")).toMatchObject({
    state: "failed",
    reason: "out of turns",
    exitCode: 1,
    prUrl: "https://x.test/1",
    usage: { turns: 3, inputTokens: 100, outputTokens: 20 },
    stories: [
      { id: "US-001", status: "completed" },
      { id: "US-002", status: "pending" },
    ],
    startedAt: swarm.events[2]?.at,
    endedAt: swarm.events[5]?.at,
  });
});

test("a worker that is begun anew has nothing of the one before", () => {
  const swarm = new ScriptedSwarm()
    .announce("a", ["one"])
    .announce("b", ["one"])
    .say("a", "hello")
    .files("a", "x.ts")
    .files("b", "x.ts")
    .state("a", "failed", { reason: "broken" });
  expect(boardOf(swarm).overlaps).toHaveLength(1);
  swarm.announce("a", ["one"]);
  expect(workerOf(swarm, "a")).toMatchObject({
    state: "pending",
    reason: undefined,
    lines: [],
    endedAt: undefined,
  });
  expect(boardOf(swarm).overlaps).toEqual([]);
});

test("files that several workers change are overlaps, by path", () => {
  const swarm = new ScriptedSwarm()
    .announce("a", [])
    .announce("b", [])
    .announce("c", [])
    .files("b", "z.ts", "y.ts")
    .files("a", "y.ts", "z.ts", "only-a.ts")
    .files("c", "y.ts");
  expect(boardOf(swarm).overlaps).toEqual([
    { path: "y.ts", workers: ["aimi-swarm-a", "aimi-swarm-b", "aimi-swarm-c"] },
    { path: "z.ts", workers: ["aimi-swarm-a", "aimi-swarm-b"] },
  ]);
});

test("what says nothing new leaves the very same board", () => {
  const swarm = new ScriptedSwarm()
    .announce("a", ["one"])
    .state("a", "running")
    .say("a", "same")
    .usage("a", 1, 2, 3)
    .story("a", 1, "in_progress", "same")
    .warn("careful", "a")
    .files("a", "x");
  const board = boardOf(swarm);
  const again = new ScriptedSwarm()
    .state("a", "running")
    .say("a", "same\n\n  \n")
    .usage("a", 1, 2, 3)
    .story("a", 1, "in_progress", "same")
    .warn("careful", "a")
    .files("a", "x")
    .say("nobody", "of whom nothing is known");
  for (const event of again.events.slice(1)) expect(nextBoard(board, event)).toBe(board);
});

test("however much a worker says, little of it is kept", () => {
  const swarm = new ScriptedSwarm().announce("a", ["one"]);
  for (let index = 0; index < 200; index += 1)
    swarm.say("a", `${index} ${"x".repeat(10_000)}`).warn(`no. ${index}`);
  swarm.say("a", "line\n".repeat(50_000));
  const board = boardOf(swarm);
  const lines = workerOf(swarm, "a").lines;
  expect(lines).toHaveLength(20);
  expect(lines.at(-1)).toBe("line");
  expect(lines.join("").length).toBeLessThan(50_000);
  expect(board.warnings).toHaveLength(20);
});
