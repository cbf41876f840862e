import { afterEach, describe, expect, test, vi } from "vitest";
import type { AuditEntry, AuditStore } from "../core/access/audit.ts";
import { StreamLogger } from "../log/stream-logger.ts";
import { AuditTrail } from "./audit-trail.ts";

const MOST_KEPT = 10_000;
const entry = (requestId: string): AuditEntry => ({
  requestId,
  operation: "exec",
  owner: "me",
  name: "me",
  sandbox: undefined,
  status: 200,
  code: undefined,
  at: new Date(0),
});

/** A store that can be told to fail. */
function fallibleStore() {
  const written: string[] = [];
  const state = { isFailing: false, attempts: 0 };
  const store: AuditStore = {
    append: async (entries) => {
      state.attempts += 1;
      if (state.isFailing) throw new Error("the disk is full");
      written.push(...entries.map(({ requestId }) => requestId));
    },
    list: async () => [],
  };
  const lines: string[] = [];
  const logger = new StreamLogger({
    level: "debug",
    format: "json",
    write: (line) => lines.push(line),
    now: () => new Date(),
  });
  return { trail: new AuditTrail(store, logger), written, state, lines };
}

test("what is asked again and again is kept once a minute, for each caller and each outcome", async () => {
  const { trail, written } = fallibleStore();
  const at = (seconds: number) => new Date(1_000_000_000 + seconds * 1000);
  const asked = (requestId: string, seconds: number, more: Partial<AuditEntry> = {}) =>
    trail.recordRepeated({ ...entry(requestId), at: at(seconds), ...more });
  asked("first", 0);
  asked("again", 59);
  asked("theirs", 59, { owner: "you" });
  asked("refused", 59, { status: 404 });
  asked("later", 60);
  asked("clock set back", 10);
  await trail.close();
  expect(written).toEqual(["first", "theirs", "refused", "later", "clock set back"]);
});

afterEach(() => {
  vi.useRealTimers();
});

describe("an audit log whose store fails for a while", () => {
  test("keeps its entries and writes them in order, each once", async () => {
    vi.useFakeTimers();
    const { trail, written, state, lines } = fallibleStore();
    state.isFailing = true;
    trail.record(entry("a"));
    await vi.advanceTimersByTimeAsync(1_000);
    trail.record(entry("b"));
    await vi.advanceTimersByTimeAsync(10_000);
    expect(written).toEqual([]);
    expect(lines.filter((line) => line.includes("cannot be written"))).toHaveLength(1);
    state.isFailing = false;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(written).toEqual(["a", "b"]);
    trail.record(entry("c"));
    await vi.advanceTimersByTimeAsync(1_000);
    expect(written).toEqual(["a", "b", "c"]);
    expect(lines.join("")).not.toContain("lost");
  });

  test("does not try at each request", async () => {
    vi.useFakeTimers();
    const { trail, state } = fallibleStore();
    state.isFailing = true;
    for (let at = 0; at < 100; at += 1) {
      trail.record(entry(String(at)));
      await vi.advanceTimersByTimeAsync(100);
    }
    expect(state.attempts).toBeLessThan(5);
    await trail.close();
  });

  test("keeps a bounded number and says how many are lost", async () => {
    const { trail, written, state, lines } = fallibleStore();
    state.isFailing = true;
    trail.record(entry("first"));
    await trail.flush();
    for (let at = 1; at < MOST_KEPT + 7; at += 1) trail.record(entry(String(at)));
    state.isFailing = false;
    await trail.flush();
    expect(written).toHaveLength(MOST_KEPT);
    expect(written[0]).toBe("first");
    const lost = lines.filter((line) => line.includes("audit entries lost")).map((line) => JSON.parse(line));
    expect(lost).toMatchObject([{ lost: 7 }]);
  });

  test("tries a last time when it is closed, and says what it could not write", async () => {
    const { trail, state, lines } = fallibleStore();
    state.isFailing = true;
    trail.record(entry("a"));
    trail.record(entry("b"));
    await trail.close();
    expect(lines.filter((line) => line.includes("lost")).map((line) => JSON.parse(line))).toMatchObject([
      { lost: 2 },
    ]);
  });
});
