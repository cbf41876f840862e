import { expect, test } from "vitest";
import { scriptedWorkspace } from "../../../test/history/scripted-workspace.ts";
import { KnownEntries } from "./known-entries.ts";
import { WatchBudget } from "./watch-budget.ts";
import { WorkspaceObserver } from "./workspace-observer.ts";

function makeObserver(budget = new WatchBudget()) {
  const workspace = scriptedWorkspace();
  const known = new KnownEntries();
  const observer = new WorkspaceObserver(workspace, known, budget);
  return {
    workspace,
    observer,
    known,
    async look(isQuiet = false) {
      workspace.nowNs += 1_000_000_000n;
      const from = workspace.asked.length;
      const { removed, changed } = await observer.changes(undefined, isQuiet);
      const paths = changed.map(({ path }) => path).sort();
      return {
        asked: workspace.asked.slice(from).map((asked) => asked.split(" ")[0]),
        removed,
        changed: paths,
      };
    },
  };
}

test("one look scans; from the second on a watch is kept and asked", async () => {
  const { workspace, look } = makeObserver();
  workspace.watchable = true;
  workspace.write("d/a", "1");
  expect(await look()).toEqual({ asked: ["scan"], removed: [], changed: ["d/a"] });
  workspace.write("d/b", "1");
  expect(await look()).toMatchObject({ asked: ["watch", "scan"], changed: ["d/b"] });
  workspace.write("d/a", "2");
  workspace.remove("d/b");
  expect(await look()).toEqual({ asked: ["?"], removed: ["d/b"], changed: ["d/a"] });
  expect(await look()).toEqual({ asked: ["?"], removed: [], changed: [] });
});

test("after a quiet end nobody is asked, unless there is no watch or a scan is due", async () => {
  const { workspace, look } = makeObserver();
  workspace.watchable = true;
  workspace.write("a", "1");
  expect(await look(true)).toMatchObject({ asked: ["scan"], changed: ["a"] });
  expect(await look(true)).toMatchObject({ asked: ["watch", "scan"] });
  let looks = 0;
  for (; (await look(true)).asked.length === 0; looks += 1);
  expect(looks).toBe(100);
  workspace.write("a", "2");
  expect(await look()).toMatchObject({ asked: ["?"], changed: ["a"] });
  workspace.killWatch();
  workspace.write("a", "3");
  expect(await look()).toMatchObject({ asked: ["watch", "scan"], changed: ["a"] });
});

test("what a watch tells of a directory that went and came again replaces what was known beneath it", async () => {
  const { workspace, known, look } = makeObserver();
  workspace.watchable = true;
  workspace.write("d/a", "1");
  workspace.write("d/gone", "1");
  await look();
  await look();
  workspace.tellGone("d");
  workspace.write("d/a", "1");
  expect(await look()).toMatchObject({ removed: ["d"], changed: ["d/a"] });
  expect(known.get("d/gone")).toBeUndefined();
  expect(known.get("d/a")).toBeDefined();
});

test("a file written through one of its names is read under all of them", async () => {
  const { workspace, look } = makeObserver();
  workspace.watchable = true;
  workspace.write("a", "1");
  workspace.hardLink("a", "d/b");
  await look();
  await look();
  workspace.write("a", "2");
  expect(await look()).toMatchObject({ asked: ["?"], changed: ["a", "d/b"] });
});

test("when the watch has lost events, is killed or cannot be had, a scan tells", async () => {
  const { workspace, look } = makeObserver();
  workspace.watchable = true;
  workspace.write("a", "1");
  await look();
  await look();
  workspace.loseEvents = true;
  workspace.write("a", "2");
  expect(await look()).toMatchObject({ asked: ["?", "scan"], changed: ["a"] });
  expect(await look()).toMatchObject({ asked: ["?"] });
  workspace.killWatch();
  workspace.write("a", "3");
  expect(await look()).toMatchObject({ asked: ["watch", "scan"], changed: ["a"] });
  workspace.watchable = false;
  workspace.killWatch();
  const asked = [];
  for (let i = 0; i < 12; i++) asked.push((await look()).asked.join("+"));
  expect(asked.filter((one) => one === "watch+scan").length).toBeLessThan(5);
  expect(asked.every((one) => one.endsWith("scan"))).toBe(true);
});

test("a watch that can never tell is given up for a while", async () => {
  const { workspace, look } = makeObserver();
  workspace.watchable = true;
  await look();
  await look();
  const asked = [];
  for (let i = 0; i < 8; i++) {
    workspace.loseEvents = true;
    asked.push((await look()).asked.join("+"));
  }
  expect(asked.slice(0, 3)).toEqual(["?+scan", "?+scan", "?+scan"]);
  expect(asked.slice(3, 8)).toEqual(["scan", "scan", "scan", "scan", "scan"]);
});

test("now and then a scan looks for what makes no event", async () => {
  const { workspace, look } = makeObserver();
  workspace.watchable = true;
  workspace.write("a", "1");
  await look();
  await look();
  workspace.isSilent = true;
  workspace.write("a", "2");
  workspace.isSilent = false;
  let looks = 0;
  while (!(await look()).asked.includes("scan")) looks += 1;
  expect(looks).toBe(100);
});

test("an answer that is none ends the watch, and a scan tells", async () => {
  const { workspace, look } = makeObserver();
  workspace.watchable = true;
  await look();
  await look();
  workspace.write("a", "1");
  workspace.nonsense = true;
  expect(await look()).toMatchObject({ asked: ["?", "watch", "scan"], changed: ["a"] });
});

test("of too many watches the one that was not asked for the longest time is let go, and had again", async () => {
  const budget = new WatchBudget(2);
  const [one, two, three] = [makeObserver(budget), makeObserver(budget), makeObserver(budget)];
  for (const { workspace, look } of [one, two, three]) {
    workspace.watchable = true;
    await look();
    await look();
  }
  one.workspace.write("a", "1");
  expect(await two.look()).toMatchObject({ asked: ["?"] });
  expect(await one.look()).toMatchObject({ asked: ["watch", "scan"], changed: ["a"] });
  expect(await two.look()).toMatchObject({ asked: ["?"] });
  expect(await three.look()).toMatchObject({ asked: ["watch", "scan"] });
});
