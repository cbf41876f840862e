import { describe, expect, test } from "vitest";
import { filled, readAll } from "../../../test/evidence/evidence-fixture.ts";

describe("evidence", () => {
  test("that could not be written is written with what comes next, in order", async () => {
    using fixture = await filled(1);
    fixture.failNext(2);
    await fixture.log.append("box", "kept-1", { n: 1 });
    fixture.log.appendSoon("box", "kept-2", { n: 2 });
    expect(await fixture.verdict()).toMatchObject({
      ok: false,
      problems: [{ problem: "unwritten", message: "2 entries wait to be written" }],
    });
    await fixture.log.append("box", "later");
    const events = (await readAll(fixture.log)).map((entry) => entry.event);
    expect(events).toEqual(["event-1", "kept-1", "kept-2", "later"]);
    expect(await fixture.verdict()).toMatchObject({ ok: true, entries: 4 });
  });

  test("whose line was written before the store failed is not written twice", async () => {
    using fixture = await filled(1);
    fixture.loseCommits(true);
    await fixture.log.append("box", "once");
    fixture.loseCommits(false);
    await fixture.log.append("box", "later");
    const events = (await readAll(fixture.log)).map((entry) => entry.event);
    expect(events).toEqual(["event-1", "once", "later"]);
    expect(await fixture.verdict()).toMatchObject({ ok: true, entries: 3 });
  });

  test("that is too much to be kept leaves a line that says how much is missing", async () => {
    using fixture = await filled(1);
    fixture.failNext(4);
    const detail = { list: Array.from({ length: 160 }, () => "x".repeat(4096)) };
    for (const event of ["kept", "lost-1", "lost-2"]) await fixture.log.append("box", event, detail);
    await fixture.log.append("box", "lost-3");
    expect(fixture.errors.at(-1)).toBe("Evidence is lost");
    await fixture.log.append("box", "later");
    const entries = await readAll(fixture.log);
    expect(entries.map((entry) => entry.event)).toEqual(["event-1", "kept", "evidence.lost", "later"]);
    expect(entries[2]).toMatchObject({ actor: "aido", detail: { count: 3 } });
    expect(await fixture.verdict()).toMatchObject({ ok: true, entries: 4 });
  });
});
