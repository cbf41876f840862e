import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "libsql";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sandboxRecord } from "../../../test/contract/records.ts";
import { bundle } from "../../../test/processes/bundle.ts";
import { startChild } from "../../../test/processes/child.ts";
import { ClockJumps } from "../../core/clock-jumps.ts";
import { DataDir } from "../../core/data-dir.ts";
import { EvidenceLog } from "../../core/evidence/evidence-log.ts";
import { LinuxProcessIdentity } from "../../core/process-identity.ts";
import { SandboxClaims } from "../../core/sandbox/sandbox-claims.ts";
import { SystemClock } from "../../core/system-clock.ts";
import { SqliteStore } from "./sqlite-store.ts";

const ORDER = ["pending", "running", "stopped"];
const RACES = 400;
let built: Awaited<ReturnType<typeof bundle>>;

beforeAll(async () => {
  built = await bundle(new URL("../../../test/processes/store-program.ts", import.meta.url));
}, 60_000);
afterAll(() => built?.[Symbol.dispose]());

describe("several processes on one database", () => {
  test("lose nothing that was confirmed when they are killed at any point", async () => {
    await using place = await openPlace();
    for (let index = 0; index < RACES; index++) {
      await place.store.sandboxes.insert(sandboxRecord(`race-${index}`));
    }
    const told: string[] = [];
    for (let round = 0; round < 3; round++) {
      const children = ["a", "b", "c"].map((name) =>
        startChild(built.program, ["records", place.root, `${name}${round}`]),
      );
      try {
        await Promise.all(children.map((child, index) => child.until(20 + 7 * index + round)));
      } finally {
        await Promise.all(children.map((child) => child.kill()));
      }
      told.push(...children.flatMap((child) => child.lines));
    }
    await expectIntact(place, told);
    await expectOneWinnerEach(place.store, told);
  });

  test("append to one chain of evidence without breaking it, also when they are killed", async () => {
    await using place = await openPlace();
    const told = new Map<string, number>();
    for (let round = 0; round < 2; round++) {
      const children = ["a", "b"].map((name) => {
        const actor = `${name}${round}`;
        return { actor, child: startChild(built.program, ["evidence", place.root, actor]) };
      });
      try {
        await Promise.all(children.map(({ child }, index) => child.until(40 + 9 * index)));
      } finally {
        await Promise.all(children.map(({ child }) => child.kill()));
      }
      for (const { actor, child } of children) told.set(actor, child.lines.length);
    }
    const log = new EvidenceLog({
      heads: place.store.evidence,
      dataDir: new DataDir(place.root),
      clock: new SystemClock(),
      logger: { debug() {}, info() {}, warn() {}, error() {}, child: () => expect.fail("no child logger") },
      actor: "test",
    });
    await log.append("box", "last");
    expect(await log.verify("box")).toMatchObject([{ ok: true, problems: [] }]);
    const seen = new Map<string, number>();
    for await (const { actor, detail } of log.read("box")) {
      if (detail === undefined) continue;
      expect(detail["index"]).toBe(seen.get(actor) ?? 0);
      seen.set(actor, (seen.get(actor) ?? 0) + 1);
    }
    for (const [actor, count] of told) expect(seen.get(actor)).toBeGreaterThanOrEqual(count);
  });

  test("see at once that the holder of a claim has died", async () => {
    await using place = await openPlace();
    await using child = startChild(built.program, ["claim", place.root, "x"]);
    await child.until(1);
    const processes = new LinuxProcessIdentity("test");
    const clock = new SystemClock();
    const claims = new SandboxClaims({ store: place.store, clock, jumps: new ClockJumps(clock), processes });
    await expect(claims.hold("box", "launch", async () => undefined)).rejects.toMatchObject({
      code: "CONTAINER_BUSY",
    });
    expect(await claims.abandoned()).toEqual([]);
    await child.kill();
    expect(await claims.abandoned()).toMatchObject([{ sandboxId: "box", purpose: "launch" }]);
    expect(await claims.hold("box", "stop", async () => "mine")).toBe("mine");
    expect(await claims.abandoned()).toEqual([]);
  });

  test("may all come first to a database that does not exist", async () => {
    await using place = await openPlace({ isFresh: true });
    const children = ["a", "b", "c", "d"].map((name) =>
      startChild(built.program, ["records", place.root, name]),
    );
    try {
      await Promise.all(children.map((child) => child.until(3)));
    } finally {
      await Promise.all(children.map((child) => child.kill()));
    }
    await expectIntact(
      place,
      children.flatMap((child) => child.lines),
    );
  });
});

interface Place {
  root: string;
  store: SqliteStore;
}

async function expectIntact({ root, store }: Place, told: readonly string[]): Promise<void> {
  const raw = new Database(new DataDir(root).database);
  try {
    expect(raw.prepare("PRAGMA integrity_check").all([])).toMatchObject([{ integrity_check: "ok" }]);
    expect(raw.prepare("PRAGMA foreign_key_check").all([])).toEqual([]);
    const wrong =
      "SELECT 1 FROM sandbox_labels l JOIN sandboxes s ON s.seq = l.seq WHERE l.state <> s.state OR l.value <> substr(s.id, 1, instr(s.id, '-') - 1)";
    expect(raw.prepare(wrong).all([])).toEqual([]);
  } finally {
    raw.close();
  }
  for (const line of told) {
    const [id = "", state = ""] = line.split(" ");
    if (state === "won") continue;
    const record = await store.sandboxes.get(id);
    expect(ORDER.indexOf(record?.state ?? "missing"), line).toBeGreaterThanOrEqual(ORDER.indexOf(state));
    if (record?.state !== "pending") expect(await store.execs.get(id, "e1"), line).toBeDefined();
  }
}

async function expectOneWinnerEach(store: SqliteStore, told: readonly string[]): Promise<void> {
  const won = told.filter((line) => line.endsWith(" won")).map((line) => line.split(" ")[0] ?? "");
  expect(won.length).toBeGreaterThan(0);
  expect(new Set(won).size).toBe(won.length);
  for (const id of won) expect(await store.sandboxes.get(id)).toMatchObject({ state: "running" });
}

async function openPlace(options = { isFresh: false }): Promise<Place & AsyncDisposable> {
  const root = mkdtempSync(join(tmpdir(), "aido-processes-"));
  let opened: SqliteStore | undefined;
  const open = () => {
    opened ??= new SqliteStore(new DataDir(root).database);
    return opened;
  };
  if (!options.isFresh) open();
  return {
    root,
    get store() {
      return open();
    },
    async [Symbol.asyncDispose]() {
      await opened?.close();
      rmSync(root, { recursive: true, force: true });
    },
  };
}
