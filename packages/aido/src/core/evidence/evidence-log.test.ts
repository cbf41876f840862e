import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { evidenceFixture, filled, readAll } from "../../../test/evidence/evidence-fixture.ts";

describe("evidence", () => {
  test("S0-31 is one JSON object per line with timestamp, event and detail", async () => {
    using fixture = evidenceFixture();
    await fixture.log.append("box", "sandbox.created", { image: "x", n: 1 });
    await fixture.log.append("box", "run.starting", undefined, "alice");
    const lines = fixture
      .text()
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines).toMatchObject([
      {
        seq: 1,
        timestamp: "2026-01-01T00:00:00.000Z",
        event: "sandbox.created",
        detail: { image: "x", n: 1 },
        actor: "tester",
      },
      { seq: 2, event: "run.starting", actor: "alice" },
    ]);
    expect(lines[1].prev).toBe(lines[0].hash);
    expect(statSync(fixture.file).mode & 0o777).toBe(0o600);
    expect(await fixture.verdict()).toEqual({ sandboxId: "box", entries: 2, ok: true, problems: [] });
  });

  test("that is told soon stands in order with what is told at once, and is there for whoever reads", async () => {
    using fixture = evidenceFixture();
    fixture.log.appendSoon("box", "one", { n: 1 });
    fixture.log.appendSoon("box", "two", { n: 2 });
    await fixture.log.append("box", "three");
    fixture.log.appendSoon("box", "four", {});
    const events = [];
    for await (const { event } of fixture.log.read("box")) events.push(event);
    expect(events).toEqual(["one", "two", "three", "four"]);
    expect(await fixture.verdict()).toMatchObject({ ok: true, entries: 4 });
    fixture.log.appendSoon("box", "five", {});
    await expect.poll(() => fixture.text()).toContain('"five"');
  });

  test("of equal details is equal, whatever their key order and odd values", async () => {
    using fixture = evidenceFixture();
    const odd = {
      z: 1,
      a: { y: undefined, x: new Date(0), list: [undefined, 1n] },
      text: "a\u2028b\u0000\n\ud800",
    };
    await fixture.log.append("box", "one", odd);
    await fixture.log.append("box", "two", {
      long: "x".repeat(10_000),
      many: Array.from({ length: 300 }, () => 1),
    });
    expect(await fixture.verdict()).toMatchObject({ ok: true, entries: 2 });
    const entries = [];
    for await (const entry of fixture.log.read("box")) entries.push(entry);
    expect(Object.keys(entries[0]?.detail ?? {})).toEqual(["a", "text", "z"]);
    expect(String(entries[1]?.detail?.["long"])).toMatch(/x… 5904 more$/);
  });

  test("names a changed line by its number", async () => {
    using fixture = await filled(5);
    fixture.edit((lines) =>
      lines.map((line, index) => (index === 2 ? line.replace("event-3", "event-X") : line)),
    );
    expect(await fixture.verdict()).toMatchObject({ ok: false, problems: [{ line: 3, problem: "changed" }] });
  });

  test("names a line that was changed and hashed anew", async () => {
    using fixture = await filled(5);
    const { hashOf, parseLine, toLine } = await import("./evidence-line.ts");
    fixture.edit((lines) =>
      lines.map((line, index) => {
        const entry = parseLine(line);
        if (index !== 2 || entry === undefined) return line;
        const changed = { ...entry, event: "event-X" };
        return toLine({ ...changed, hash: hashOf(changed) }).trimEnd();
      }),
    );
    expect(await fixture.verdict()).toMatchObject({ ok: false, problems: [{ line: 4, problem: "changed" }] });
  });

  test("finds a last line that was changed and hashed anew through the store", async () => {
    using fixture = await filled(3);
    const { hashOf, parseLine, toLine } = await import("./evidence-line.ts");
    fixture.edit((lines) => {
      const entry = parseLine(lines[2] ?? "");
      if (entry === undefined) throw new Error("line 3 is missing");
      const changed = { ...entry, event: "event-Y" };
      return [...lines.slice(0, 2), toLine({ ...changed, hash: hashOf(changed) }).trimEnd()];
    });
    expect(await fixture.verdict()).toMatchObject({ ok: false, problems: [{ line: 3, problem: "changed" }] });
  });

  test("names removed lines where they are missing", async () => {
    using fixture = await filled(6);
    fixture.edit((lines) => lines.filter((_, index) => index !== 2 && index !== 3));
    const verdict = await fixture.verdict();
    expect(verdict.problems).toEqual([
      { line: 3, problem: "removed", message: "Entries 3 to 4 are missing before line 3" },
    ]);
  });

  test("names a reordered line", async () => {
    using fixture = await filled(4);
    fixture.edit(([a = "", b = "", c = "", d = ""]) => [a, c, b, d]);
    const problems = (await fixture.verdict()).problems.map(({ line, problem }) => ({ line, problem }));
    expect(problems).toContainEqual({ line: 3, problem: "reordered" });
  });

  test("names an unreadable line, and that alone", async () => {
    using fixture = await filled(4);
    fixture.edit((lines) => lines.map((line, index) => (index === 1 ? "{not json" : line)));
    expect((await fixture.verdict()).problems).toEqual([
      { line: 2, problem: "unreadable", message: "Line 2 is not an entry" },
    ]);
    await expect(readAll(fixture.log)).rejects.toMatchObject({ code: "EVIDENCE_BROKEN" });
  });

  test("finds a truncated tail through the head in the store, also when all of it is gone", async () => {
    using fixture = await filled(4);
    fixture.edit((lines) => lines.slice(0, 2));
    expect((await fixture.verdict()).problems).toEqual([
      { line: 3, problem: "truncated", message: "The log ends after line 2; the last 2 entries are missing" },
    ]);
    rmSync(fixture.file);
    expect((await fixture.verdict()).problems).toMatchObject([{ line: 1, problem: "truncated" }]);
  });

  test("goes on after a truncation without hiding it", async () => {
    using fixture = await filled(4);
    fixture.edit((lines) => lines.slice(0, 2));
    await fixture.log.append("box", "later");
    expect((await fixture.verdict()).problems).toMatchObject([{ line: 3, problem: "removed" }]);
  });

  test("takes over a line whose writer died before it told the store", async () => {
    using fixture = await filled(2);
    const before = fixture.text();
    const head = await fixture.store.evidence.get("box");
    await fixture.log.append("box", "event-3");
    const withThird = fixture.text();
    await fixture.store.evidence.advance("box", () => head);
    expect(await fixture.verdict()).toMatchObject({ ok: true, entries: 3 });
    await fixture.store.evidence.advance("box", () => head);
    await fixture.log.append("box", "event-4");
    expect(fixture.text().startsWith(withThird)).toBe(true);
    expect(withThird.startsWith(before)).toBe(true);
    expect(await fixture.verdict()).toMatchObject({ ok: true, entries: 4 });
  });

  test("cuts off a line that was torn by a crash", async () => {
    using fixture = await filled(2);
    appendFileSync(fixture.file, '{"seq":3,"timest');
    expect(await fixture.verdict()).toMatchObject({ ok: true, entries: 2 });
    appendFileSync(fixture.file, '{"seq":3,"timest');
    await fixture.log.append("box", "event-3");
    expect(await fixture.verdict()).toMatchObject({ ok: true, entries: 3 });
  });

  test("keeps a whole line that nobody recorded, so that it is found", async () => {
    using fixture = await filled(2);
    appendFileSync(fixture.file, "planted\n");
    await fixture.log.append("box", "event-3");
    expect((await fixture.verdict()).problems).toEqual([
      { line: 3, problem: "unreadable", message: "Line 3 is not an entry" },
    ]);
  });

  test("moves to the archive with its sandbox, and later entries follow it", async () => {
    using fixture = await filled(2);
    await fixture.log.archive("box");
    rmSync(fixture.dataDir.sandbox("box"), { recursive: true });
    await fixture.log.archive("box");
    await fixture.log.append("box", "late");
    expect(readFileSync(join(fixture.dataDir.evidence, "box.log"), "utf8").split("\n")).toHaveLength(4);
    expect(await fixture.verdict()).toMatchObject({ ok: true, entries: 3 });
    expect((await readAll(fixture.log)).map((entry) => entry.event)).toEqual(["event-1", "event-2", "late"]);
  });

  test.each(["link", "directory", "pipe"])(
    "that was replaced by a %s is told as that, beside the others, and is kept",
    async (kind) => {
      using fixture = await filled(2);
      mkdirSync(fixture.dataDir.sandbox("two"), { recursive: true });
      await fixture.log.append("two", "x");
      rmSync(fixture.file);
      if (kind === "link") symlinkSync("/etc/passwd", fixture.file);
      else if (kind === "directory") mkdirSync(fixture.file);
      else execFileSync("mkfifo", [fixture.file]);
      const problem = { line: 1, problem: "unreadable", message: expect.stringContaining("is no file") };
      expect(await fixture.log.verify()).toMatchObject([
        { sandboxId: "box", ok: false, problems: [problem] },
        { sandboxId: "two", ok: true },
      ]);
      await expect(readAll(fixture.log)).rejects.toMatchObject({ code: "EVIDENCE_BROKEN" });
      await fixture.log.archive("box");
      expect(existsSync(fixture.file)).toBe(false);
      expect(await fixture.verdict()).toMatchObject({ ok: false });
    },
  );

  test("with a line of any length is verified", async () => {
    using fixture = await filled(2);
    truncateSync(fixture.file, 200 * 1024 ** 2);
    appendFileSync(fixture.file, "\nplanted\n");
    const problems = (await fixture.verdict()).problems.map(({ line, problem }) => `${line} ${problem}`);
    expect(problems).toEqual(["3 unreadable", "4 unreadable"]);
  });

  test("of every sandbox is verified when none is named", async () => {
    using fixture = await filled(1);
    mkdirSync(fixture.dataDir.sandbox("two"), { recursive: true });
    await fixture.log.append("two", "x");
    expect((await fixture.log.verify()).map((verdict) => verdict.sandboxId)).toEqual(["box", "two"]);
    for (const id of ["nobody", "../../etc/passwd", ""]) {
      await expect(fixture.log.verify(id)).rejects.toMatchObject({ code: "RESOURCE_NOT_FOUND" });
    }
  });

  test("never fails the operation it describes, and a link in its place is not followed", async () => {
    using fixture = evidenceFixture();
    const target = join(fixture.dataDir.root, "target");
    writeFileSync(target, "");
    symlinkSync(target, fixture.file);
    await fixture.log.append("box", "one");
    expect(readFileSync(target, "utf8")).toBe("");
    expect(fixture.errors).toEqual(["Evidence cannot be written now; it is kept and tried again"]);
  });
});
