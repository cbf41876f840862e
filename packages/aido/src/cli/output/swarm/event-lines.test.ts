import { expect, test } from "vitest";
import { busySwarm, ScriptedSwarm } from "../../testing/scripted-swarm.ts";
import { EMPTY_BOARD, nextBoard } from "./board.ts";
import { eventLines } from "./event-lines.ts";
import { drawLine } from "./spans.ts";

function linesOf({ events }: ScriptedSwarm): string[] {
  let board = EMPTY_BOARD;
  return events.flatMap((event) => {
    const before = board;
    board = nextBoard(before, event);
    return eventLines(before, board, event).map((line) => drawLine(line, Number.POSITIVE_INFINITY, false));
  });
}

test("a busy swarm in lines", async () => {
  await expect(`${linesOf(busySwarm().done()).join("\n")}\n`).toMatchFileSnapshot("snapshots/lines.txt");
});

test("what is told again is not printed again", () => {
  const swarm = new ScriptedSwarm().announce("a", ["one"]).state("a", "running").say("a", "Editing x.ts");
  const before = linesOf(swarm).length;
  swarm.state("a", "running").say("a", "Editing x.ts").say("a", " \n ").usage("a", 1, 2).files("a", "x.ts");
  expect(linesOf(swarm)).toHaveLength(before);
});

test("many files that overlap at once are one line", () => {
  const paths = Array.from({ length: 100 }, (_, index) => `src/${String(index).padStart(3, "0")}.ts`);
  const swarm = new ScriptedSwarm()
    .announce("a", [])
    .announce("b", [])
    .files("a", ...paths)
    .files("b", ...paths);
  expect(linesOf(swarm).at(-1)).toBe(
    "overlap: a, b change src/000.ts, src/001.ts, src/002.ts, src/003.ts, src/004.ts and 95 more files",
  );
});

test("a line of a worker cannot pass for another's, nor act on a terminal", () => {
  const swarm = new ScriptedSwarm()
    .announce("a", ["one"])
    .announce("b", ["one"])
    .say("a", "fine\nb | completed\u001b[1A\rswarm ended");
  expect(linesOf(swarm).slice(-3)).toEqual(["a | fine", "a | b | completed\\x1b[1A", "a | swarm ended"]);
});
