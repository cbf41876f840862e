import { expect, test } from "vitest";
import { EMPTY_BOARD, nextBoard } from "../../src/cli/output/swarm/board.ts";
import { renderBoard } from "../../src/cli/output/swarm/render-board.ts";
import { PLAYS } from "../../src/cli/testing/scripted-swarm.ts";
import { Tmux } from "./tmux.ts";

const PLAYER = new URL("./play-board.mjs", import.meta.url).pathname;
const PROMPT_BEFORE = "what was there before";

async function play(terminal: Tmux, name: keyof typeof PLAYS): Promise<void> {
  await terminal.type(`echo ${PROMPT_BEFORE}; clear -x; echo ${PROMPT_BEFORE}`);
  await terminal.type(`${process.execPath} ${PLAYER} ${terminal.pidFile} ${name}; echo ended with $?`);
}

function expected(name: keyof typeof PLAYS, cols: number, rows: number): string {
  const swarm = PLAYS[name]();
  const board = swarm.events.reduce(nextBoard, EMPTY_BOARD);
  const lines = renderBoard(board, { width: cols - 1, height: rows, colour: false, now: swarm.now });
  return lines.join("\n").trimEnd();
}

/** Cursor to be seen, not on the second screen, lines wrap. */
const AS_IT_WAS = ["1", "0", "1"];
const terminalState = (terminal: Tmux) => terminal.know("cursor_flag", "alternate_on", "wrap_flag");

const SIZES = [60, 80, 120, 200].flatMap((cols) => [10, 24, 50].map((rows) => [cols, rows] as const));

test.each(SIZES)(
  "a terminal of %i columns and %i rows shows the board as it was laid out",
  async (cols, rows) => {
    await using terminal = await Tmux.open(cols, rows);
    await play(terminal, "busy");
    const wanted = expected("busy", cols, rows);
    expect(await terminal.until((screen) => screen === wanted)).toBe(wanted);
    expect(await terminal.screen({ colour: true })).toContain("\u001b[");
    await terminal.signal("SIGUSR1");
    const after = await terminal.until((screen) => screen.includes("ended with 0"));
    expect(await terminalState(terminal)).toEqual(AS_IT_WAS);
    expect(after.split("\n").at(-3)).toContain("cart: said nothing for 5 minutes");
  },
);

test("without colours nothing is coloured", async () => {
  await using terminal = await Tmux.open(100, 30, { NO_COLOR: "1" });
  await play(terminal, "busy");
  await terminal.until((screen) => screen === expected("busy", 100, 30));
  expect(await terminal.screen({ colour: true })).not.toContain("\u001b[");
});

test("a change of size leaves no debris, in either direction", async () => {
  await using terminal = await Tmux.open(120, 30);
  await play(terminal, "busy");
  for (const [cols, rows] of [
    [120, 30],
    [60, 12],
    [150, 40],
    [40, 6],
    [80, 24],
  ] as const) {
    await terminal.resize(cols, rows);
    const wanted = expected("busy", cols, rows);
    expect(await terminal.until((screen) => screen === wanted)).toBe(wanted);
  }
});

test("what a hostile worker writes changes nothing but its own lines", async () => {
  await using terminal = await Tmux.open(100, 24);
  const title = await terminal.know("pane_title");
  await play(terminal, "hostile");
  const wanted = expected("hostile", 100, 24);
  expect(await terminal.until((screen) => screen === wanted)).toBe(wanted);
  expect(await terminal.know("pane_title")).toEqual(title);
  expect(await terminal.know("alternate_on", "cursor_flag")).toEqual(["1", "0"]);
});

test("when the process ends in the middle the terminal is as it was", async () => {
  await using terminal = await Tmux.open(80, 24);
  await play(terminal, "busy");
  await terminal.until((screen) => screen.startsWith("swarm"));
  await terminal.signal("SIGUSR2");
  const screen = await terminal.until((text) => text.includes("ended with 3"));
  expect(screen).toContain(PROMPT_BEFORE);
  expect(await terminalState(terminal)).toEqual(AS_IT_WAS);
});

test("Ctrl-C twice ends it at once and gives the terminal back", async () => {
  await using terminal = await Tmux.open(80, 24);
  await play(terminal, "busy");
  await terminal.until((screen) => screen.startsWith("swarm"));
  await terminal.press("C-c");
  await terminal.untilAsked();
  await terminal.press("C-c");
  await expect.poll(() => terminalState(terminal), { timeout: 10_000 }).toEqual(AS_IT_WAS);
  expect(await terminal.until((text) => text.includes(PROMPT_BEFORE))).toContain(PROMPT_BEFORE);
});

test("Ctrl-Z shows the shell, and `fg` the board again", async () => {
  await using terminal = await Tmux.open(80, 24);
  await play(terminal, "busy");
  const wanted = expected("busy", 80, 24);
  await terminal.until((screen) => screen === wanted);
  await terminal.press("C-z");
  await terminal.until((screen) => screen.includes("Stopped"));
  expect(await terminalState(terminal)).toEqual(AS_IT_WAS);
  await terminal.type("fg");
  expect(await terminal.until((screen) => screen === wanted)).toBe(wanted);
  await terminal.signal("SIGUSR1");
  await terminal.until((screen) => screen.includes("cart: said nothing"));
  expect(await terminalState(terminal)).toEqual(AS_IT_WAS);
});

test("a dumb terminal gets lines", async () => {
  await using terminal = await Tmux.open(120, 24);
  await terminal.type("export TERM=dumb");
  await play(terminal, "busy");
  await terminal.until((screen) => screen.includes("warning: cart: said nothing for 5 minutes"));
  expect(await terminal.know("alternate_on")).toEqual(["0"]);
});
