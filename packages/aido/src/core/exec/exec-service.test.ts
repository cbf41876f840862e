import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import type { AidoError, ErrorBody } from "@aido/sdk/protocol";
import { describe, expect, it } from "vitest";
import { type ExecBed, type FakeDriver, fakeBed, SANDBOX, until } from "../../../test/exec/exec-bed.ts";
import { HandClock } from "../../../test/exec/hand-clock.ts";
import { collect } from "./collect.ts";

type Bed = ExecBed<FakeDriver>;
const run = (bed: Bed, argv: string[], extra = {}) =>
  collect(bed.execs, SANDBOX, { argv, ...extra }, { maxBytes: 1_000_000 });

describe("an exec", () => {
  it("gives its output, its exit code and how long it took", async () => {
    await using bed = await fakeBed();
    const { info, stdout, stderr } = await run(bed, ["echo", "hello", "wörld"]);
    expect(info).toMatchObject({
      id: "exec_1",
      sandboxId: SANDBOX,
      status: "exited",
      exitCode: 0,
      stdoutBytes: 13,
    });
    expect(info.durationMs).toBeGreaterThanOrEqual(0);
    expect([stdout.toString(), stderr.toString()]).toEqual(["hello wörld\n", ""]);
    expect((await run(bed, ["exit", "42"])).info).toMatchObject({ status: "exited", exitCode: 42 });
  });

  it("makes no file for a stream that said nothing", async () => {
    await using bed = await fakeBed();
    const { info } = await run(bed, ["true"]);
    await expect(stat(bed.dataDir.exec(SANDBOX, info.id))).rejects.toMatchObject({ code: "ENOENT" });
  });

  it("gets the variables of the sandbox, then its own, and a terminal's name only on a terminal", async () => {
    await using bed = await fakeBed();
    await run(bed, ["true"], { env: { FROM_SANDBOX: "2", MINE: "a=b" } });
    await run(bed, ["true"], { pty: { rows: 24, cols: 80 } });
    const [plain, terminal] = bed.driver.started(SANDBOX);
    expect(plain?.env).toEqual([
      expect.stringMatching(/^PATH=\/usr\/local\/sbin:/),
      "HOME=/work",
      "LANG=C.UTF-8",
      "FROM_SANDBOX=2",
      "MINE=a=b",
    ]);
    expect(terminal?.env).toContain("TERM=xterm-256color");
    expect(terminal).toMatchObject({ rows: 24, cols: 80 });
  });

  it("runs once however often its id is given", async () => {
    await using bed = await fakeBed();
    const [first, second] = await Promise.all([
      bed.execs.start(SANDBOX, { id: "only", argv: ["echo", "1"] }),
      bed.execs.start(SANDBOX, { id: "only", argv: ["echo", "1"] }),
    ]);
    expect(second.id).toBe(first.id);
    await bed.execs.wait(SANDBOX, "only");
    expect(await bed.execs.start(SANDBOX, { id: "only", argv: ["echo", "1"] })).toMatchObject({
      status: "exited",
    });
    expect(bed.driver.started(SANDBOX)).toHaveLength(1);
  });

  it("resolves users by number and by the sandbox's own passwd", async () => {
    await using bed = await fakeBed();
    const passwd = "root:x:0:0::/:/bin/sh\nbob:x:1001:1002::/home/bob:/bin/sh\nbad:x:-1:zz::/:\n";
    await bed.driver.files(SANDBOX).writeFile("/", "/etc/passwd", passwd);
    expect((await run(bed, ["id"], { user: "bob" })).stdout.toString()).toBe("1001:1002\n");
    expect((await run(bed, ["id"], { user: "7" })).stdout.toString()).toBe("7:7\n");
    expect((await run(bed, ["id"], { user: "7:8" })).stdout.toString()).toBe("7:8\n");
    expect((await run(bed, ["id"])).stdout.toString()).toBe("1000:1000\n");
    for (const user of ["alice", "bad", "99999999999", "-1"]) {
      await expect(run(bed, ["id"], { user })).rejects.toMatchObject({ code: "VALIDATION_ERROR" });
    }
  });

  it("is refused when its request makes no sense", async () => {
    await using bed = await fakeBed();
    const long = "x".repeat(140_000);
    const cases: [object, string][] = [
      [{ argv: [] }, "VALIDATION_ERROR"],
      [{ argv: [""] }, "VALIDATION_ERROR"],
      [{ argv: ["a\0b"] }, "VALIDATION_ERROR"],
      [{ argv: ["true"], id: "../up" }, "VALIDATION_ERROR"],
      [{ argv: ["true"], id: ".." }, "VALIDATION_ERROR"],
      [{ argv: ["true"], env: { "A B": "1" } }, "VALIDATION_ERROR"],
      [{ argv: ["true"], env: { A: "1\0" } }, "VALIDATION_ERROR"],
      [{ argv: ["true"], timeoutMs: -1 }, "VALIDATION_ERROR"],
      [{ argv: ["true"], pty: { rows: 0, cols: 80 } }, "VALIDATION_ERROR"],
      [{ argv: ["true"], cwd: "a\0" }, "INVALID_PATH"],
      [{ argv: ["echo", long] }, "ARGUMENTS_TOO_LONG"],
      [{ argv: ["echo", ...Array.from({ length: 20 }, () => "y".repeat(100_000))] }, "ARGUMENTS_TOO_LONG"],
      [{ argv: ["true"], env: { A: long } }, "ARGUMENTS_TOO_LONG"],
    ];
    for (const [request, code] of cases) {
      await expect(bed.execs.start(SANDBOX, request as { argv: string[] })).rejects.toMatchObject({ code });
    }
    expect(await bed.execs.list(SANDBOX)).toEqual([]);
    await expect(bed.execs.get(SANDBOX, "none")).rejects.toMatchObject({ code: "EXECUTION_NOT_FOUND" });
    await expect(bed.execs.wait(SANDBOX, "none")).rejects.toMatchObject({ code: "EXECUTION_NOT_FOUND" });
    await expect(bed.execs.kill(SANDBOX, "none")).rejects.toMatchObject({ code: "EXECUTION_NOT_FOUND" });
  });

  it("whose command is missing says so and is recorded as 127", async () => {
    await using bed = await fakeBed();
    const starting = bed.execs.start(SANDBOX, { id: "typo", argv: ["ecoh"] });
    await expect(starting).rejects.toMatchObject({ code: "EXECUTION_FAILED", details: { errno: "ENOENT" } });
    const told = await starting.catch((thrown: AidoError) => thrown.toBody());
    expect(await bed.execs.get(SANDBOX, "typo")).toMatchObject({
      status: "exited",
      exitCode: 127,
      startError: (told as ErrorBody).error,
    });
    const again = bed.execs.start(SANDBOX, { id: "typo", argv: ["ecoh"] });
    expect(await again.catch((thrown: AidoError) => thrown.toBody())).toEqual(told);
  });

  it("that asks for another command under a known id is refused", async () => {
    await using bed = await fakeBed();
    await bed.execs.start(SANDBOX, { id: "one", argv: ["true"] });
    await expect(bed.execs.start(SANDBOX, { id: "one", argv: ["false"] })).rejects.toMatchObject({
      code: "EXECUTION_CONFLICT",
    });
  });

  it("that is killed, times out or says too much ends with that status", async () => {
    const clock = new HandClock();
    await using bed = await fakeBed({ clock, outputBytes: 1_000 });
    const killed = await bed.execs.start(SANDBOX, { argv: ["sleep", "60"] });
    await bed.execs.kill(SANDBOX, killed.id);
    expect(await bed.execs.wait(SANDBOX, killed.id)).toMatchObject({
      status: "killed",
      exitCode: 143,
      signal: "SIGTERM",
    });
    const stubborn = await bed.execs.start(SANDBOX, {
      argv: ["stubborn"],
      timeoutMs: 5_000,
      killGraceMs: 100,
    });
    await clock.advance(5_000);
    expect(await bed.execs.get(SANDBOX, stubborn.id)).toMatchObject({ status: "running" });
    await clock.advance(100);
    expect(await bed.execs.wait(SANDBOX, stubborn.id)).toMatchObject({
      status: "timeout",
      signal: "SIGKILL",
    });
    const flood = await bed.execs.start(SANDBOX, { argv: ["flood", "5000"] });
    expect(await bed.execs.wait(SANDBOX, flood.id)).toMatchObject({
      status: "output_limit",
      stdoutBytes: 1_000,
    });
    await expect(bed.execs.kill(SANDBOX, flood.id, { signal: "NOPE" })).rejects.toMatchObject({
      code: "VALIDATION_ERROR",
    });
    await bed.execs.kill(SANDBOX, flood.id);
  });

  it("goes on when whoever waits for it goes away", async () => {
    await using bed = await fakeBed();
    const { id } = await bed.execs.start(SANDBOX, { argv: ["cat"], stdin: true });
    const gone = new AbortController();
    const waiting = bed.execs.wait(SANDBOX, id, gone.signal);
    gone.abort();
    await expect(waiting).rejects.toMatchObject({ name: "AbortError" });
    await bed.execs.writeStdin(SANDBOX, id, Buffer.from("still here"));
    await bed.execs.closeStdin(SANDBOX, id);
    expect(await bed.execs.wait(SANDBOX, id)).toMatchObject({ status: "exited", stdoutBytes: 10 });
    await expect(bed.execs.writeStdin(SANDBOX, id, Buffer.from("x"))).rejects.toMatchObject({
      code: "EXECUTION_CONFLICT",
    });
  });

  it("is killed when collecting it is aborted", async () => {
    await using bed = await fakeBed();
    const aborting = new AbortController();
    const running = collect(
      bed.execs,
      SANDBOX,
      { id: "long", argv: ["sleep", "600"] },
      { maxBytes: 10, signal: aborting.signal },
    );
    await until("it runs", () => bed.driver.started(SANDBOX).length === 1);
    aborting.abort();
    await expect(running).rejects.toMatchObject({ name: "AbortError" });
    expect(await bed.execs.wait(SANDBOX, "long")).toMatchObject({ status: "killed" });
  });
});

describe("evidence", () => {
  it("tells what ran and how it ended, with hashes and without values of variables", async () => {
    await using bed = await fakeBed();
    await run(bed, ["echo", "hi"], { env: { SECRET: "hunter2" }, user: "5:6", cwd: "sub" });
    await bed.execs.close();
    expect(bed.told.map(({ event }) => event)).toEqual(["exec.started", "exec.ended"]);
    expect(bed.told[0]?.detail).toMatchObject({
      execId: "exec_1",
      argv: ["echo", "hi"],
      cwd: "/work/sub",
      user: "5:6",
      envNames: ["PATH", "HOME", "LANG", "FROM_SANDBOX", "SECRET"],
    });
    expect(bed.told[1]?.detail).toMatchObject({
      execId: "exec_1",
      status: "exited",
      exitCode: 0,
      stdoutBytes: 3,
      stdoutSha256: createHash("sha256").update("hi\n").digest("hex"),
      stderrSha256: createHash("sha256").update("").digest("hex"),
    });
    expect(JSON.stringify(bed.told)).not.toContain("hunter2");
  });
});
