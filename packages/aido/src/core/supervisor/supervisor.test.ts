import { describe, expect, it } from "vitest";
import { fakeBed, SANDBOX, until } from "../../../test/exec/exec-bed.ts";
import { HandClock } from "../../../test/exec/hand-clock.ts";
import { encodeSupervisorFrame } from "./supervisor-frames.ts";

const silent = { onOutput() {}, onEnd() {}, onDetached() {}, onLost() {} };
const spec = (id: string, argv: string[]) => ({
  id,
  argv,
  env: [],
  cwd: "",
  user: undefined,
  stdin: false,
  pty: undefined,
  timeoutMs: 0,
  graceMs: 100,
  outputLimit: 0,
  isTool: false,
});

describe("a supervisor", () => {
  it("that belongs to another owner is not spoken to", async () => {
    await using bed = await fakeBed();
    bed.host.supervisors.close();
    const stranger = bed.host.supervisors.get({ id: SANDBOX, supervisorToken: "cd".repeat(32) });
    await expect(stranger.list()).rejects.toMatchObject({ code: "FORBIDDEN" });
  });

  it("that breaks the protocol again and again is given up, and its execs are lost", async () => {
    await using bed = await fakeBed();
    const { id } = await bed.execs.start(SANDBOX, { argv: ["sleep", "600"] });
    const waiting = bed.execs.wait(SANDBOX, id);
    let isOver = false;
    void waiting.finally(() => {
      isOver = true;
    });
    await until("it is given up", () => {
      bed.driver.sendRaw(SANDBOX, Buffer.from([255, 255, 255, 255, 1, 2, 3]));
      return isOver;
    });
    expect(await waiting).toMatchObject({ status: "lost" });
    expect(
      bed.logged.filter((line) => line.startsWith("warn: ") && line.includes("unknown protocol")),
    ).toHaveLength(3);
  });

  it("that sends output out of order, beyond its ring or with wrong totals is taken for hostile", async () => {
    const output = (offset: number, data: Buffer) =>
      encodeSupervisorFrame({ type: "output", id: "x", stream: 1, offset, data });
    const end = {
      type: "end",
      id: "x",
      how: 1,
      code: 0,
      flags: 0,
      stderrTotal: 0,
      cpuMs: 0,
      maxRssBytes: 0,
    } as const;
    const lies = [
      output(7, Buffer.from("gap")),
      Buffer.concat([output(0, Buffer.alloc(200_000)), output(200_000, Buffer.alloc(200_000))]),
      encodeSupervisorFrame({ ...end, stdoutTotal: 5 }),
      encodeSupervisorFrame({ type: "stdinAck", id: "x", offset: 9, closed: false }),
    ];
    for (const lie of lies) {
      await using bed = await fakeBed();
      const supervisor = bed.host.supervisors.get(await bed.record());
      await supervisor.startExec(spec("x", ["sleep", "600"]), silent);
      bed.driver.sendRaw(SANDBOX, lie);
      await until("it is refused", () => bed.logged.some((line) => line.includes("unknown protocol")));
    }
  });

  it("is reconnected to before the next request, and only then", async () => {
    await using bed = await fakeBed();
    const supervisor = bed.host.supervisors.get(await bed.record());
    for (let round = 0; round < 3; round += 1) {
      bed.driver.dropConnections(SANDBOX);
      expect(await supervisor.list()).toEqual([]);
    }
  });

  it("that cannot be reached within the limit is reported, not waited for", async () => {
    const clock = new HandClock();
    await using bed = await fakeBed({ clock });
    bed.driver.stall(SANDBOX, true);
    bed.driver.dropConnections(SANDBOX);
    const supervisor = bed.host.supervisors.get(await bed.record());
    const asking = supervisor.list();
    const refused = expect(asking).rejects.toMatchObject({ code: "DEADLINE_EXCEEDED" });
    await clock.advance(16_000);
    await refused;
  });

  it("that has no connection left for another process is waited for, then named as busy", async () => {
    const clock = new HandClock();
    await using bed = await fakeBed({ clock });
    const record = await bed.record();
    const hosts = Array.from({ length: 15 }, () => bed.newHost());
    for (const { supervisors } of [bed.host, ...hosts]) await supervisors.get(record).list();
    const late = bed.newHost().supervisors.get(record);
    const refused = expect(late.list()).rejects.toMatchObject({
      code: "QUOTA_EXCEEDED",
      hint: expect.stringContaining("aido serve"),
    });
    await clock.advance(16_000);
    await refused;
    const patient = late.list();
    await hosts[0]?.close();
    await clock.advance(2_000);
    expect(await patient).toEqual([]);
    expect(bed.logged.filter((line) => line.startsWith("warn: "))).toEqual([]);
  });

  it("that breaks the protocol now and then over a long life is not given up, nor are its execs", async () => {
    const clock = new HandClock();
    await using bed = await fakeBed({ clock });
    const { id } = await bed.execs.start(SANDBOX, { argv: ["sleep", "36000"] });
    for (let round = 1; round <= 4; round += 1) {
      await clock.advance(60_000);
      bed.driver.sendRaw(SANDBOX, Buffer.from([255, 255, 255, 255, 1, 2, 3]));
      await until(
        "it is seen",
        () => bed.logged.filter((line) => line.startsWith("warn: ")).length === round,
      );
    }
    expect(await bed.execs.get(SANDBOX, id)).toMatchObject({ status: "running" });
  });

  it("is asked no more once the caller has gone", async () => {
    await using bed = await fakeBed();
    const supervisor = bed.host.supervisors.get(await bed.record());
    bed.driver.stall(SANDBOX, true);
    const leaving = new AbortController();
    const asking = supervisor.list(leaving.signal);
    leaving.abort();
    await expect(asking).rejects.toMatchObject({ name: "AbortError" });
  });

  it("kills what was being started for a caller who has gone", async () => {
    await using bed = await fakeBed();
    const supervisor = bed.host.supervisors.get(await bed.record());
    const leaving = new AbortController();
    const starting = supervisor.startExec(spec("orphan", ["sleep", "600"]), silent, leaving.signal);
    leaving.abort();
    await expect(starting).rejects.toMatchObject({ name: "AbortError" });
    await until("it is gone", async () =>
      (await supervisor.list()).every(({ id, ended }) => id !== "orphan" || ended),
    );
  });

  it("that has started anew has lost the execs of its former life", async () => {
    await using bed = await fakeBed();
    const lost: string[] = [];
    const supervisor = bed.host.supervisors.get(await bed.record());
    const listener = { ...silent, onLost: (error: { code: string }) => lost.push(error.code) };
    await supervisor.startExec(spec("old", ["sleep", "600"]), listener);
    bed.driver.crash(SANDBOX);
    await bed.driver.start(SANDBOX);
    await until("it is told", () => lost.length === 1);
    expect(["EXECUTION_NOT_FOUND", "CONTAINER_LOST"]).toContain(lost[0]);
    await supervisor.configure({ deadlineMs: 0, uid: 1, gid: 1, workdir: "/work" });
    expect(await supervisor.list()).toEqual([]);
  });

  it("is pinged when it is quiet and stays connected while it answers", async () => {
    const clock = new HandClock();
    await using bed = await fakeBed({ clock });
    const { id } = await bed.execs.start(SANDBOX, { argv: ["sleep", "3600"] });
    await clock.advance(600_000);
    expect(bed.logged.filter((line) => line.includes("could not be reached"))).toEqual([]);
    expect(await bed.execs.get(SANDBOX, id)).toMatchObject({ status: "running" });
  });

  it("ends with the sandbox at its deadline", async () => {
    const clock = new HandClock();
    await using bed = await fakeBed({ clock });
    const supervisor = bed.host.supervisors.get(await bed.record());
    await supervisor.configure({ deadlineMs: 1_000, uid: 1, gid: 1, workdir: "" });
    await clock.advance(1_000);
    expect(await bed.driver.inspect(SANDBOX)).toMatchObject({ state: "exited", exitCode: 124 });
  });

  it("refuses a tool it does not have", async () => {
    await using bed = await fakeBed();
    const supervisor = bed.host.supervisors.get(await bed.record());
    await expect(supervisor.tool(["no-such-tool", "/", "x"]).done).rejects.toMatchObject({
      code: "EXECUTION_FAILED",
    });
  });

  it("shuts down when asked", async () => {
    await using bed = await fakeBed();
    await bed.host.supervisors.get(await bed.record()).shutdown(100);
    await until("it has ended", async () => (await bed.driver.inspect(SANDBOX))?.state === "exited");
  });
});
