import { afterEach, describe, expect, test, vi } from "vitest";
import { fakeBed, SANDBOX } from "../../../test/exec/exec-bed.ts";

const LONG_MS = 600_000;

afterEach(() => {
  vi.useRealTimers();
});

/** Time that passes only when a test says so, for tools alone: all else has its own clock. */
function holdTime(): void {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
}

/** Lets all that is on its way arrive, then time pass. */
async function wait(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await new Promise<void>((resolve) => setImmediate(resolve));
  await vi.advanceTimersByTimeAsync(LONG_MS);
}

async function everything(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return Buffer.concat(parts);
}

async function bedWithSupervisor() {
  const bed = await fakeBed();
  const supervisor = bed.host.supervisors.get(await bed.record());
  return { bed, supervisor, [Symbol.asyncDispose]: () => bed[Symbol.asyncDispose]() };
}

describe("a builtin tool that code in the sandbox has stopped", () => {
  test.each([
    ["stat", ["stat", "/", "work"]],
    ["move", ["move", "/", "work/a", "work/b"]],
    ["remove", ["remove", "/", "work/a"]],
    ["mkdir", ["mkdir", "/", "work/d", "755"]],
    ["tar", ["tar", "/", "work"]],
    ["watch", ["watch", "/", "work"]],
  ])("is given up and killed: %s", async (tool, argv) => {
    await using parts = await bedWithSupervisor();
    const { bed, supervisor } = parts;
    holdTime();
    bed.driver.haltTools(SANDBOX, true);
    const run = supervisor.tool(argv, { isLasting: tool === "watch" });
    const refused = expect(run.done).rejects.toMatchObject({ code: "DEADLINE_EXCEEDED" });
    await wait();
    await refused;
    expect(await everything(run.stdout)).toHaveLength(0);
    const areGone = async () => (await supervisor.list()).every(({ ended }) => ended);
    vi.useRealTimers();
    await expect.poll(areGone, { timeout: 10_000 }).toBe(true);
  });

  test("is given up though there is input left for it", async () => {
    await using parts = await bedWithSupervisor();
    const { bed, supervisor } = parts;
    holdTime();
    bed.driver.haltTools(SANDBOX, true);
    const run = supervisor.tool(["write", "/", "work/f", "-"], { stdin: Buffer.alloc(3_000_000) });
    const refused = expect(run.done).rejects.toMatchObject({ code: "DEADLINE_EXCEEDED" });
    await wait();
    await refused;
  });

  test("does not hold up a caller that leaves", async () => {
    await using parts = await bedWithSupervisor();
    const { bed } = parts;
    bed.driver.haltTools(SANDBOX, true);
    const { files } = bed;
    const asks: ((signal: AbortSignal) => Promise<unknown>)[] = [
      (signal) => files.stat(SANDBOX, "a", signal),
      (signal) => files.list(SANDBOX, ".", { signal }),
      (signal) => files.move(SANDBOX, "a", "b", signal),
      (signal) => files.remove(SANDBOX, "a", signal),
      (signal) => files.mkdir(SANDBOX, "d", signal),
      (signal) => files.write(SANDBOX, "a", Buffer.from("x"), { signal }),
      (signal) => everything(files.read(SANDBOX, "a", signal)),
    ];
    for (const ask of asks) {
      const leaving = new AbortController();
      const asked = ask(leaving.signal);
      leaving.abort(new Error("left"));
      await expect(asked).rejects.toThrow("left");
    }
  });
});

describe("a builtin tool that is not to blame goes on", () => {
  test("while its input is slow to come", async () => {
    await using parts = await bedWithSupervisor();
    const { bed, supervisor } = parts;
    holdTime();
    const slow = async function* () {
      yield Buffer.from("one ");
      await wait();
      yield Buffer.from("two");
    };
    await supervisor.tool(["write", "/", "work/slow", "-"], { stdin: slow() }).done;
    expect((await bed.driver.files(SANDBOX).readFile("/work", "slow")).toString()).toBe("one two");
  });

  test("while its output is slow to be taken", async () => {
    await using parts = await bedWithSupervisor();
    const { bed, supervisor } = parts;
    await bed.driver.files(SANDBOX).writeFile("/work", "big", Buffer.alloc(200_000, "x"));
    holdTime();
    const run = supervisor.tool(["read", "/", "work/big"]);
    let bytes = 0;
    for await (const chunk of run.stdout) {
      await wait();
      bytes += chunk.length;
    }
    await run.done;
    expect(bytes).toBe(200_000);
  });

  test("when it has spoken and is one that speaks when something happens", async () => {
    await using parts = await bedWithSupervisor();
    const { bed, supervisor } = parts;
    holdTime();
    const leaving = new AbortController();
    const run = supervisor.tool(["watch", "/", "work"], { isLasting: true, signal: leaving.signal });
    const events = run.stdout[Symbol.asyncIterator]();
    await events.next();
    const next = events.next();
    await wait();
    await bed.driver.files(SANDBOX).writeFile("/work", "new", Buffer.from("x"));
    expect((await next).done).toBe(false);
    leaving.abort();
  });
});

describe("input of a builtin tool", () => {
  test("is asked for as far as there is room, not only when the tool has taken what came before", async () => {
    await using parts = await bedWithSupervisor();
    const { bed, supervisor } = parts;
    bed.driver.haltTools(SANDBOX, true);
    const leaving = new AbortController();
    let asked = 0;
    const source = async function* () {
      for (;;) {
        asked += 1;
        yield Buffer.alloc(100_000);
      }
    };
    const run = supervisor.tool(["write", "/", "work/f", "-"], { stdin: source(), signal: leaving.signal });
    // Five fit into the window; the sixth is being sent.
    await expect.poll(() => asked, { timeout: 10_000 }).toBe(6);
    leaving.abort(new Error("left"));
    await expect(run.done).rejects.toThrow("left");
    expect(asked).toBe(6);
  });

  test("may come in one memory that is used again, also when the connection is lost meanwhile", async () => {
    await using parts = await bedWithSupervisor();
    const { bed, supervisor } = parts;
    const memory = Buffer.alloc(90_000);
    const content: Buffer[] = [];
    const source = async function* () {
      for (let round = 0; round < 40; round += 1) {
        memory.fill(round + 1);
        content.push(Buffer.from(memory));
        if (round % 10 === 5) bed.driver.dropConnections(SANDBOX);
        yield memory;
        memory.fill(0xee);
      }
    };
    await supervisor.tool(["write", "/", "work/f", "-"], { stdin: source() }).done;
    const written = await bed.driver.files(SANDBOX).readFile("/work", "f");
    expect(written.equals(Buffer.concat(content))).toBe(true);
  });
});
