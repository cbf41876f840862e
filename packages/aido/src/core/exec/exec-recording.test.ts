import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  type ExecBed,
  type FakeDriver,
  fakeBed,
  floodBytes,
  SANDBOX,
  until,
} from "../../../test/exec/exec-bed.ts";
import { HandClock } from "../../../test/exec/hand-clock.ts";
import { collect } from "./collect.ts";

type Bed = ExecBed<FakeDriver>;
const run = (bed: Bed, argv: string[], extra = {}) =>
  collect(bed.execs, SANDBOX, { argv, ...extra }, { maxBytes: 1_000_000 });

async function followed(bed: Bed, id: string, execs = bed.execs): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let next = 0;
  for await (const { stream, offset, data } of execs.output(SANDBOX, id, { follow: true })) {
    if (stream !== "stdout") continue;
    expect(offset).toBe(next);
    next += data.length;
    chunks.push(data);
  }
  return Buffer.concat(chunks);
}

/** Holds programs up until a test opens it. */
function gateway(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((open) => {
    resolve = open;
  });
  return { promise, resolve };
}

describe("recorded output", () => {
  it("of 5 MiB on both streams arrives once and whole through dropped connections", async () => {
    const both = async (process: { stdout(b: Buffer): Promise<void>; stderr(b: Buffer): Promise<void> }) => {
      for (let at = 0; at < 5_242_880; at += 40_000) {
        const part = floodBytes(at, Math.min(40_000, 5_242_880 - at));
        await process.stdout(part);
        await process.stderr(part);
      }
      return 0;
    };
    await using bed = await fakeBed({ programs: { both } });
    const { id } = await bed.execs.start(SANDBOX, { argv: ["both"] });
    const reading = followed(bed, id);
    for (const mib of [1, 2, 3, 4]) {
      await until(
        `${mib} MiB`,
        async () => (await bed.execs.get(SANDBOX, id)).stdoutBytes >= mib * 1_048_576,
      );
      bed.driver.dropConnections(SANDBOX);
    }
    const expected = floodBytes(0, 5_242_880);
    expect((await reading).equals(expected)).toBe(true);
    const stderr = await readFile(join(bed.dataDir.exec(SANDBOX, id), "stderr"));
    expect(stderr.equals(expected)).toBe(true);
  });

  it("is cut at the collector's limit but kept whole", async () => {
    await using bed = await fakeBed();
    const request = { argv: ["flood", "300000"] };
    const { info, stdout, truncated } = await collect(bed.execs, SANDBOX, request, { maxBytes: 1_000 });
    expect(stdout.equals(floodBytes(0, 1_000))).toBe(true);
    expect(truncated).toEqual({ stdout: true, stderr: false });
    expect(info.stdoutBytes).toBe(300_000);
  });

  it("that the host cannot write ends the command as lost instead of going on unseen", async () => {
    await using bed = await fakeBed();
    await mkdir(bed.dataDir.sandbox(SANDBOX), { recursive: true });
    await writeFile(bed.dataDir.execs(SANDBOX), "a file where a directory must be");
    const { info } = await run(bed, ["stubborn"]);
    expect(info).toMatchObject({ status: "lost", stdoutBytes: 0 });
    expect(bed.logged.some((line) => line.startsWith("error: ") && line.includes("cannot be written"))).toBe(
      true,
    );
  });

  it("is refused at offsets that are no numbers of bytes", async () => {
    await using bed = await fakeBed();
    const { info } = await run(bed, ["echo", "x"]);
    for (const stdoutOffset of [-1, 0.5, Number.NaN]) {
      const reading = bed.execs.output(SANDBOX, info.id, { stdoutOffset }).next();
      await expect(reading).rejects.toMatchObject({ code: "VALIDATION_ERROR" });
    }
    const beyond = await bed.execs.output(SANDBOX, info.id, { stdoutOffset: 1_000 }).next();
    expect(beyond.done).toBe(true);
  });
});

describe("several processes", () => {
  it("follow one exec: one that had lost its connection while the other took over leaves it to that one", async () => {
    const [gate, network] = [gateway(), gateway()];
    const gated = async (process: { stdout(b: Buffer): Promise<void> }) => {
      await gate.promise;
      await process.stdout(floodBytes(0, 400_000));
      return 0;
    };
    await using bed = await fakeBed({ programs: { gated } });
    const { id } = await bed.execs.start(SANDBOX, { argv: ["gated"] });
    const first = followed(bed, id);
    // Only the first process is without: it comes back when all has been said and acknowledged to the other.
    const connect = bed.driver.connect.bind(bed.driver);
    let asked = 0;
    bed.driver.connect = async (sandboxId) => {
      asked += 1;
      if (asked === 1) await network.promise;
      return connect(sandboxId);
    };
    bed.driver.dropConnections(SANDBOX);
    await until("it is looking for another", () => asked === 1);
    const other = bed.newHost();
    const [ended, reading] = [other.execs.wait(SANDBOX, id), followed(bed, id, other.execs)];
    gate.resolve();
    const store = bed.store.execs.end.bind(bed.store.execs);
    const held = gateway();
    let ends = 0;
    bed.store.execs.end = async (...end) => {
      ends += 1;
      if (ends === 1) await held.promise;
      return store(...end);
    };
    await until("all is acknowledged", async () => {
      const [exec] = await other.supervisors.get(await bed.record()).list();
      return exec?.stdoutBase === 400_000;
    });
    network.resolve();
    const record = await bed.record();
    await until("it is there again", () => bed.host.supervisors.get(record).isConnected);
    await bed.host.supervisors.get(record).list();
    held.resolve();
    expect(await ended).toMatchObject({ status: "exited", exitCode: 0, stdoutBytes: 400_000 });
    for (const seen of [await first, await reading]) expect(seen.equals(floodBytes(0, 400_000))).toBe(true);
    expect(await bed.execs.get(SANDBOX, id)).toMatchObject({ status: "exited", exitCode: 0 });
  });

  it("follow one exec: the second takes over and both see every byte once", async () => {
    const gate = gateway();
    const gated = async (process: { stdout(b: Buffer): Promise<void> }) => {
      await process.stdout(floodBytes(0, 400_000));
      await gate.promise;
      await process.stdout(floodBytes(400_000, 400_000));
      return 0;
    };
    await using bed = await fakeBed({ programs: { gated } });
    const { id } = await bed.execs.start(SANDBOX, { argv: ["gated"] });
    const first = followed(bed, id);
    await until("half is there", async () => (await bed.execs.get(SANDBOX, id)).stdoutBytes === 400_000);
    const other = bed.newHost();
    const second = followed(bed, id, other.execs);
    await until("the other records", async () => (await bed.execs.get(SANDBOX, id)).stdoutBytes === 400_000);
    gate.resolve();
    const expected = floodBytes(0, 800_000);
    expect((await second).equals(expected)).toBe(true);
    expect((await first).equals(expected)).toBe(true);
    await other.close();
    await bed.execs.close();
    expect(bed.told.map(({ event }) => event)).toEqual(["exec.started", "exec.ended"]);
  });

  it("tell that an exec ended also when its recording cannot be read", async () => {
    const gate = gateway();
    const gated = async (process: { stdout(b: string): Promise<void> }) => {
      await process.stdout("a");
      await gate.promise;
      return 0;
    };
    await using bed = await fakeBed({ programs: { gated } });
    const { id } = await bed.execs.start(SANDBOX, { argv: ["gated"] });
    await until("it is recorded", async () => (await bed.execs.get(SANDBOX, id)).stdoutBytes === 1);
    bed.host.die();
    const other = bed.newHost();
    await other.execs.recover(SANDBOX);
    await rm(join(bed.dataDir.exec(SANDBOX, id), "stdout"));
    gate.resolve();
    await other.execs.wait(SANDBOX, id);
    await other.close();
    expect(bed.told.at(-1)).toMatchObject({
      event: "exec.ended",
      detail: { execId: id, exitCode: 0, stdoutSha256: null, stderrSha256: expect.any(String) },
    });
  });

  it("take back what a dead successor left unrecorded", async () => {
    const gate = gateway();
    const gated = async (process: { stdout(b: string): Promise<void> }) => {
      await process.stdout("a");
      await gate.promise;
      await process.stdout("b");
      return 5;
    };
    await using bed = await fakeBed({ programs: { gated } });
    const { id } = await bed.execs.start(SANDBOX, { argv: ["gated"] });
    const first = followed(bed, id);
    const other = bed.newHost();
    await other.execs.recover(SANDBOX);
    other.die();
    gate.resolve();
    expect((await first).toString()).toBe("ab");
    expect(await bed.execs.wait(SANDBOX, id)).toMatchObject({ status: "exited", exitCode: 5 });
  });

  it("find out by asking that an exec ended while nobody listened", async () => {
    await using bed = await fakeBed();
    const { id } = await bed.execs.start(SANDBOX, { argv: ["cat"], stdin: true });
    await bed.execs.writeStdin(SANDBOX, id, Buffer.from("some"));
    bed.host.die();
    const other = bed.newHost();
    expect(await other.execs.get(SANDBOX, id)).toMatchObject({ status: "running" });
    await other.execs.writeStdin(SANDBOX, id, Buffer.from(" more"));
    await other.execs.closeStdin(SANDBOX, id);
    other.die();
    const third = bed.newHost();
    await until("the end is seen", async () => (await third.execs.get(SANDBOX, id)).status === "exited");
    expect((await third.execs.list(SANDBOX))[0]).toMatchObject({ exitCode: 0, stdoutBytes: 9 });
  });

  it("end as lost what the supervisor does not know", async () => {
    const clock = new HandClock();
    await using bed = await fakeBed({ clock });
    const record = {
      id: "ghost",
      sandboxId: SANDBOX,
      argv: ["true"],
      status: "running" as const,
      exitCode: undefined,
      signal: undefined,
      startError: undefined,
      fingerprint: undefined,
      startedAt: clock.now(),
      endedAt: undefined,
      stdoutBytes: 0,
      stderrBytes: 0,
      unrecorded: false,
    };
    await bed.store.execs.insert(record);
    expect(await bed.execs.get(SANDBOX, "ghost")).toMatchObject({ status: "running" });
    await clock.advance(11_000);
    await bed.execs.recover(SANDBOX);
    expect(await bed.execs.get(SANDBOX, "ghost")).toMatchObject({ status: "lost", exitCode: undefined });
  });
});

describe("a container that dies", () => {
  it("ends its execs as lost, with what they had said", async () => {
    await using bed = await fakeBed();
    const { id } = await bed.execs.start(SANDBOX, { argv: ["stubborn"] });
    const reading = followed(bed, id);
    await until("it spoke", async () => (await bed.execs.get(SANDBOX, id)).stdoutBytes === 6);
    bed.driver.crash(SANDBOX);
    expect((await reading).toString()).toBe("ready\n");
    expect(await bed.execs.wait(SANDBOX, id)).toMatchObject({ status: "lost", exitCode: undefined });
    await expect(bed.execs.start(SANDBOX, { argv: ["true"] })).rejects.toMatchObject({
      code: "CONTAINER_LOST",
    });
  });

  it("is noticed though its supervisor only falls silent", async () => {
    const clock = new HandClock();
    await using bed = await fakeBed({ clock });
    const { id } = await bed.execs.start(SANDBOX, { argv: ["sleep", "600"] });
    bed.driver.stall(SANDBOX, true);
    await clock.advance(19_000);
    expect(await bed.execs.get(SANDBOX, id)).toMatchObject({ status: "running" });
    await clock.advance(2_000);
    bed.driver.crash(SANDBOX);
    await clock.advance(5_000);
    expect(await bed.execs.wait(SANDBOX, id)).toMatchObject({ status: "lost" });
  });
});
