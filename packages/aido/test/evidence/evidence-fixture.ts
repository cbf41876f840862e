import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DataDir } from "../../src/core/data-dir.ts";
import { EvidenceLog } from "../../src/core/evidence/evidence-log.ts";
import type { Logger } from "../../src/core/logger.ts";
import type { EvidenceHeads } from "../../src/core/store/store.ts";
import { MemoryStore } from "../../src/stores/memory/memory-store.ts";

export async function readAll(log: EvidenceLog) {
  const entries = [];
  for await (const entry of log.read("box")) entries.push(entry);
  return entries;
}

export async function filled(count: number) {
  const fixture = evidenceFixture();
  for (let index = 1; index <= count; index++) await fixture.log.append("box", `event-${index}`, { index });
  return fixture;
}

/** A log with a store and a data directory of its own, both of which can be made to fail. */
export function evidenceFixture() {
  const dataDir = new DataDir(mkdtempSync(join(tmpdir(), "aido-evidence-")));
  mkdirSync(dataDir.sandbox("box"), { recursive: true });
  const store = new MemoryStore();
  const errors: string[] = [];
  const ignore = () => undefined;
  const logger: Logger = {
    debug: ignore,
    info: ignore,
    warn: ignore,
    error: (_fields, message) => errors.push(message),
    child: () => logger,
  };
  const clock = { now: () => new Date(Date.UTC(2026, 0, 1)), sleep: async () => undefined };
  let failures = 0;
  let isCommitLost = false;
  let isOver = false;
  const heads: EvidenceHeads = {
    get: (id) => store.evidence.get(id),
    ids: () => store.evidence.ids(),
    advance: async (id, append) => {
      // What is tried again later must not make the directory anew.
      if (isOver) throw new Error("the test is over");
      if (failures > 0) {
        failures -= 1;
        throw new Error("the database is busy");
      }
      const head = await store.evidence.get(id);
      await store.evidence.advance(id, append);
      if (!isCommitLost) return;
      await store.evidence.advance(id, () => head);
      throw new Error("the disk is full");
    },
  };
  const log = new EvidenceLog({ heads, dataDir, clock, logger, actor: "tester" });
  const file = dataDir.eventsLog("box");
  return {
    log,
    store,
    dataDir,
    file,
    errors,
    text: () => readFileSync(file, "utf8"),
    failNext: (count: number) => {
      failures = count;
    },
    loseCommits: (isLost: boolean) => {
      isCommitLost = isLost;
    },
    edit(change: (lines: string[]) => string[]) {
      const lines = readFileSync(file, "utf8").trimEnd().split("\n");
      writeFileSync(file, `${change(lines).join("\n")}\n`);
    },
    async verdict() {
      const [verdict] = await log.verify("box");
      if (verdict === undefined) throw new Error("no verdict");
      return verdict;
    },
    [Symbol.dispose]: () => {
      isOver = true;
      rmSync(dataDir.root, { recursive: true, force: true });
    },
  };
}
