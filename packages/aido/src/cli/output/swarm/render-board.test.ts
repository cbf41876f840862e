import { describe, expect, test } from "vitest";
import { busySwarm, ScriptedSwarm } from "../../testing/scripted-swarm.ts";
import { textWidth } from "../text-width.ts";
import { EMPTY_BOARD, nextBoard } from "./board.ts";
import { renderBoard } from "./render-board.ts";

function render(swarm: ScriptedSwarm, width: number, height: number, colour = false): string[] {
  const board = swarm.events.reduce(nextBoard, EMPTY_BOARD);
  return renderBoard(board, { width, height, colour, now: swarm.now });
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: the colours that aido itself writes
const COLOURS = /\u001b\[(?:0|1|2|3[1236])m/g;
const SIZES = [1, 2, 5, 10, 20, 39, 60, 80, 120, 200].flatMap((width) =>
  [1, 2, 3, 5, 10, 24, 50].map((height) => [width, height] as const),
);

describe("the board", () => {
  test("of a busy swarm at 80 columns", async () => {
    await expect(`${render(busySwarm(), 80, 24).join("\n")}\n`).toMatchFileSnapshot(
      "snapshots/board-80x24.txt",
    );
  });

  test("of a busy swarm at 120 columns with much room", async () => {
    await expect(`${render(busySwarm(), 120, 50).join("\n")}\n`).toMatchFileSnapshot(
      "snapshots/board-120x50.txt",
    );
  });

  test.each(SIZES)("fits %i columns and %i rows", (width, height) => {
    const lines = render(busySwarm(), width, height);
    expect(lines.length).toBeLessThanOrEqual(height);
    for (const line of lines) expect(textWidth(line)).toBeLessThanOrEqual(width);
    const coloured = render(busySwarm(), width, height, true).map((line) =>
      line.replace(COLOURS, "").trimEnd(),
    );
    expect(coloured).toEqual(lines);
  });

  test("has no escape without colours, and ends each colour on its line with them", () => {
    expect(render(busySwarm(), 100, 40).join("")).not.toContain("\u001b");
    for (const line of render(busySwarm(), 100, 40, true)) {
      const codes = line.match(COLOURS) ?? [];
      expect(codes.length % 2).toBe(0);
      if (codes.length > 0) expect(codes.at(-1)).toBe("\u001b[0m");
    }
  });

  test("shows those at work first and counts the ones that have no room", () => {
    const swarm = new ScriptedSwarm(2);
    for (let index = 0; index < 40; index += 1) swarm.announce(`w${index}`, ["one"]);
    swarm.state("w0", "completed").state("w7", "failed", { reason: "broken" }).state("w39", "running");
    const lines = render(swarm, 80, 8);
    expect(lines[1]).toMatch(/^w39 +running/);
    expect(lines[2]).toMatch(/^w7 +failed/);
    expect(lines.at(-1)).toBe("and 35 more workers: 34 pending, 1 completed");
  });

  test("keeps warnings, overlaps and why a worker failed when there is little room", () => {
    const swarm = busySwarm().state("cart", "failed", {
      reason: "its budget of 50 turns is used up",
      exitCode: 1,
    });
    const text = render(swarm, 80, 8).join("\n");
    expect(text).toContain("its budget of 50 turns is used up, exit code 1");
    expect(text).toContain("overlap     src/routes.ts  cart, login");
    expect(text).toContain("warning     cart: said nothing");
  });

  test("says that an interrupted swarm goes on, and times stand still at the end", () => {
    const swarm = busySwarm().done(true);
    const board = swarm.events.reduce(nextBoard, EMPTY_BOARD);
    const at = (now: Date) => renderBoard(board, { width: 120, height: 50, colour: false, now });
    expect(at(swarm.now)[1]).toContain("`aido swarm resume` takes them up again");
    expect(at(new Date(swarm.now.getTime() + 3_600_000))[0]).toBe(at(swarm.now)[0]);
  });

  test("of nothing yet is a line", () => {
    expect(renderBoard(EMPTY_BOARD, { width: 80, height: 24, colour: false, now: new Date(0) })).toHaveLength(
      1,
    );
  });
});

const ATTACKS = [
  "\u001b[2J\u001b[H",
  "\u001b]0;title\u0007",
  "\u001b]52;c;ZWNobw==\u001b\\",
  "\u009b31m",
  "\u001bP+q544e\u001b\\",
  "a\rb\u0008c",
  "\u202egnp.exe",
  "\u0000\u007f",
  "\ud83d",
  "\u001b[?1049l",
];

test.each(ATTACKS)("no escape of a worker reaches the terminal: %j", (attack) => {
  const swarm = new ScriptedSwarm()
    .announce("a", [`title ${attack}`])
    .announce("b", [attack])
    .state("a", "running")
    .story("a", 1, "in_progress", attack)
    .say("a", `said ${attack}`)
    .say("a", attack, "log")
    .files("a", `src/${attack}`)
    .files("b", `src/${attack}`)
    .warn(attack, "a")
    .state("b", "failed", { reason: attack, prUrl: `https://x.test/${attack}` });
  for (const colour of [false, true]) {
    const text = render(swarm, 200, 50, colour).join("").replace(COLOURS, "");
    // biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be there
    expect(text).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]|\ud83d(?![\udc00-\udfff])/);
  }
});

test("marks that pile up on one letter and lines without end take no more than their row", () => {
  const swarm = new ScriptedSwarm()
    .announce("a", ["x".repeat(100_000)])
    .state("a", "running")
    .story("a", 1, "in_progress", `e${"\u0301".repeat(1900)}`)
    .say("a", "漢".repeat(2000));
  const lines = render(swarm, 80, 10);
  for (const line of lines) {
    expect(textWidth(line)).toBeLessThanOrEqual(80);
    expect(line.length).toBeLessThan(400);
  }
});
