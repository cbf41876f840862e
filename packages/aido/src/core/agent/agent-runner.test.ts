import type { AgentEvent } from "@aido/sdk/protocol";
import { describe, expect, test } from "vitest";
import { definition, runnerBed } from "../../../test/agents/runner-bed.ts";
import { SANDBOX, until } from "../../../test/exec/exec-bed.ts";
import { HandClock } from "../../../test/exec/hand-clock.ts";
import type { FakeProcess } from "../../drivers/fake/fake-program.ts";
import { AGENT_LABEL } from "../job/job-labels.ts";

const sleeper = definition("sleeper", ["sleep", "600"]);
const typesOf = (events: readonly AgentEvent[]) => events.map(({ type }) => type);

describe("a run of an agent", () => {
  test("S2-25 S2-95 gives the agent the message and answers with what it said", async () => {
    await using agents = await runnerBed([definition("echoing", ["tee", "note.txt"])]);
    const { result, events } = await agents.run({ message: "fix the bug", identifier: "default" });
    expect(result).toEqual({
      success: true,
      response: "fix the bug",
      error: undefined,
      errorCode: undefined,
      traceId: expect.stringMatching(/^[0-9a-f]{32}$/),
      durationMs: expect.any(Number),
      usage: { inputTokens: 0, outputTokens: 0 },
      sessionId: expect.stringMatching(/^session-/),
    });
    expect(events).toEqual([
      { type: "start", identifier: "echoing", sessionId: result.sessionId, traceId: result.traceId },
      { type: "text", id: "stdout", text: "fix the bug" },
      { type: "result", result },
    ]);
    expect(agents.bed.told.map(({ event }) => event)).toEqual(
      expect.arrayContaining(["agent.started", "agent.ended"]),
    );
    expect(agents.bed.driver.started(SANDBOX)[0]?.id).toBe(`agent_${result.traceId}`);
  });

  test("S2-26 S2-96 a session goes on where it ended, after a restart too, with turns, model and context", async () => {
    const argv = [
      "echo",
      "{message}",
      ["--model", "{model}"],
      ["--turns={maxTurns}"],
      ["--resume", "{resumeId}"],
      ["--context", "{context}"],
      "{unknown}",
    ];
    await using agents = await runnerBed([definition("mine", argv, { env: { KEY: "k" } })]);
    const first = await agents.runner.run(SANDBOX, {
      message: "one",
      sessionId: "s-1",
      maxTurns: 4,
      model: "small",
      context: { branch: "main" },
    });
    expect(first).toMatchObject({ success: true, sessionId: "s-1" });
    expect(first.response).toBe('one --model small --turns=4 --context {"branch":"main"} {unknown}\n');
    // Empty texts and zeros are how some callers say nothing.
    const second = await agents.newRunner().run(SANDBOX, {
      message: "two",
      sessionId: "s-1",
      identifier: "",
      maxTurns: 0,
      model: "",
      timeoutMs: 0,
    });
    expect(second.response).toBe("two --resume s-1 {unknown}\n");
    const [started] = agents.bed.driver.started(SANDBOX);
    expect(started?.env).toEqual(
      expect.arrayContaining([
        "KEY=k",
        "AIDO_AGENT_SESSION=s-1",
        `AIDO_AGENT_TRACE=${first.traceId}`,
        'AIDO_AGENT_CONTEXT={"branch":"main"}',
      ]),
    );
  });

  test("S2-77 its turns are used up and it goes on: it is ended and the result says so", async () => {
    const answers = async (process: FakeProcess) => {
      for (const id of ["m1", "m2", "m3"]) {
        const message = { id, content: [{ type: "text", text: `${id} ` }], usage: { output_tokens: 1 } };
        await process.stdout(`${JSON.stringify({ type: "assistant", message })}\n`);
      }
      await process.sleep(600_000);
      return 0;
    };
    const agent = definition("tireless", ["answers"], { kind: "claude" });
    await using agents = await runnerBed([agent], { answers });
    const { result, events } = await agents.run({ message: "go", maxTurns: 2 });
    expect(result).toMatchObject({
      success: false,
      response: "m1 m2 ",
      errorCode: "AGENT_FAILED",
      error: "The agent used up its turns before it was done",
    });
    expect(typesOf(events).slice(-2)).toEqual(["error", "result"]);
  });

  test("S2-77 its time is up: everything it started is ended and the result says so", async () => {
    const clock = new HandClock();
    await using agents = await runnerBed([sleeper], {}, clock);
    const running = agents.run({ message: "wait", timeoutMs: 60_000 });
    await until("it runs", () => agents.bed.driver.started(SANDBOX).length === 1);
    await clock.advance(60_000);
    const { result, events } = await running;
    expect(result).toMatchObject({ success: false, errorCode: "COMMAND_TIMEOUT" });
    expect(result.error).toContain("60 s");
    expect(typesOf(events)).toEqual(["start", "error", "result"]);
    expect(await agents.bed.store.execs.running(SANDBOX)).toEqual([]);
    expect(agents.runner.active).toBe(0);
  });

  test("an agent that fails is a result with what it said last, harmless on a terminal", async () => {
    const failing = async (process: FakeProcess) => {
      await process.stdout("half");
      await process.stderr("\u001b[31mno key\u0007\nset one\u001b]0;title\u0007");
      return 3;
    };
    await using agents = await runnerBed([definition("bad", ["failing"])], { failing });
    const { result } = await agents.run({ message: "go" });
    expect(result).toMatchObject({ success: false, errorCode: "AGENT_FAILED", response: "half" });
    expect(result.error).toContain("code 3: no key");
    // biome-ignore lint/suspicious/noControlCharactersInRegex: none may be left
    expect(result.error).not.toMatch(/[\u0000-\u001f]/);
  });

  test("an agent that writes without end is ended", async () => {
    await using agents = await runnerBed([definition("endless", ["flood", String(80 * 1024 * 1024)])]);
    const { result } = await agents.run({ message: "go" });
    expect(result).toMatchObject({ success: false, errorCode: "PAYLOAD_TOO_LARGE" });
    expect(result.response.length).toBeLessThanOrEqual(1024 * 1024 + 1);
    expect(await agents.bed.store.execs.running(SANDBOX)).toEqual([]);
  });

  test.each([
    ["no message", { message: " " }, "VALIDATION_ERROR"],
    ["an unknown agent", { message: "m", identifier: "nobody" }, "AGENT_NOT_FOUND"],
    ["a program that is not there", { message: "m", identifier: "absent" }, "AGENT_UNAVAILABLE"],
    ["a session that is a path", { message: "m", sessionId: "../x" }, "VALIDATION_ERROR"],
    ["a model that is an option", { message: "m", model: "--yes" }, "VALIDATION_ERROR"],
    ["turns below nothing", { message: "m", maxTurns: -1 }, "VALIDATION_ERROR"],
    ["a time without end", { message: "m", timeoutMs: 1e12 }, "VALIDATION_ERROR"],
    ["a huge context", { message: "m", context: { a: "x".repeat(70_000) } }, "VALIDATION_ERROR"],
  ])("%s is refused", async (_, request, code) => {
    await using agents = await runnerBed([
      definition("mine", ["cat"]),
      definition("absent", ["no-such-program"]),
    ]);
    await expect(agents.runner.run(SANDBOX, request)).rejects.toMatchObject({ code });
    expect(agents.runner.active).toBe(0);
  });

  test("`default` is the session's agent, else the sandbox's, else the settings'", async () => {
    await using agents = await runnerBed([
      definition("first", ["echo", "first"]),
      definition("second", ["echo", "second"]),
    ]);
    const said = async (request: { identifier?: string; sessionId?: string }) =>
      (await agents.runner.run(SANDBOX, { message: "m", ...request })).response.trim();
    expect(await said({})).toBe("first");
    await agents.bed.store.sandboxes.update(SANDBOX, { labels: { [AGENT_LABEL]: "second" } });
    expect(await said({ identifier: "default" })).toBe("second");
    expect(await said({ identifier: "first", sessionId: "s" })).toBe("first");
    expect(await said({ sessionId: "s" })).toBe("first");
    await expect(said({ identifier: "second", sessionId: "s" })).rejects.toMatchObject({
      code: "VALIDATION_ERROR",
    });
  });
});

describe("sessions", () => {
  test("a session takes one run at a time, over all processes; others run beside it", async () => {
    await using agents = await runnerBed([sleeper, definition("quick", ["echo", "hi"])]);
    const first = agents.run({ message: "m", sessionId: "s" });
    await until("it runs", () => agents.bed.driver.started(SANDBOX).length === 1);
    const other = agents.newRunner();
    for (const runner of [agents.runner, other]) {
      await expect(runner.run(SANDBOX, { message: "m", sessionId: "s" })).rejects.toMatchObject({
        code: "AGENT_SESSION_BUSY",
        hint: expect.stringContaining("cancel"),
      });
    }
    expect(await other.run(SANDBOX, { message: "m", identifier: "quick" })).toMatchObject({ success: true });
    expect(await agents.runner.cancel(SANDBOX, "nobody's")).toBe(0);
    expect(await agents.runner.cancel(SANDBOX, "s")).toBe(1);
    expect((await first).result).toMatchObject({ success: false, errorCode: "CANCELLED" });
    expect(await agents.bed.store.agentSessions.get(SANDBOX, "s")).toMatchObject({ runId: undefined });
  });

  test("a run of another process is cancelled through its processes", async () => {
    await using agents = await runnerBed([sleeper]);
    const running = agents.run({ message: "m", sessionId: "s" });
    await until("it runs", () => agents.bed.driver.started(SANDBOX).length === 1);
    expect(await agents.newRunner().cancel(SANDBOX)).toBe(1);
    expect((await running).result).toMatchObject({ success: false, errorCode: "CANCELLED" });
  });

  test("what a killed process left running under a session ends before the next run begins", async () => {
    const clock = new HandClock();
    await using agents = await runnerBed([sleeper, definition("quick", ["echo", "hi"])], {}, clock);
    await agents.bed.store.agentSessions.take(
      { sandboxId: SANDBOX, sessionId: "s", agent: "quick", runId: "dead", until: clock.now() },
      new Date(0),
    );
    await agents.bed.execs.start(SANDBOX, { id: "agent_dead", argv: ["sleep", "600"] });
    await agents.bed.execs.start(SANDBOX, { id: "agent_dead_1", argv: ["sleep", "600"] });
    await agents.bed.execs.start(SANDBOX, { id: "agent_deadly", argv: ["sleep", "600"] });
    const next = await agents.newRunner().run(SANDBOX, { message: "m", sessionId: "s" });
    expect(next).toMatchObject({ success: true });
    expect((await agents.bed.store.execs.running(SANDBOX)).map(({ id }) => id)).toEqual(["agent_deadly"]);
  });

  test("a run that lasts keeps its session", async () => {
    const clock = new HandClock();
    await using agents = await runnerBed([sleeper], {}, clock);
    const running = agents.run({ message: "m", sessionId: "s" });
    await until("it runs", () => agents.bed.driver.started(SANDBOX).length === 1);
    await clock.advance(5 * 60_000);
    await expect(agents.runner.run(SANDBOX, { message: "m", sessionId: "s" })).rejects.toMatchObject({
      code: "AGENT_SESSION_BUSY",
    });
    await agents.runner.cancel(SANDBOX, "s");
    expect((await running).result.errorCode).toBe("CANCELLED");
  });
});

describe("a run as a stream", () => {
  test("gives each event once it is asked for; leaving the loop ends the run", async () => {
    const counting = async (process: FakeProcess) => {
      for (let line = 0; ; line += 1) {
        await process.stdout(`${line}\n`);
        await process.sleep(1);
      }
    };
    await using agents = await runnerBed([definition("counting", ["counting"])], { counting });
    let seen = 0;
    for await (const event of agents.runner.stream(SANDBOX, { message: "m" })) {
      if (event.type === "text") seen += 1;
      if (seen === 3) break;
    }
    expect(agents.runner.active).toBe(0);
    expect(await agents.bed.store.execs.running(SANDBOX)).toEqual([]);
  });

  test("an abort rejects with its reason and leaves nothing running; a refusal is thrown", async () => {
    await using agents = await runnerBed([sleeper]);
    const abort = new AbortController();
    const running = agents.runner.run(SANDBOX, { message: "m" }, { signal: abort.signal });
    await until("it runs", () => agents.bed.driver.started(SANDBOX).length === 1);
    abort.abort(new Error("enough"));
    await expect(running).rejects.toThrow("enough");
    expect(await agents.bed.store.execs.running(SANDBOX)).toEqual([]);
    const refused = async () => {
      for await (const _ of agents.runner.stream(SANDBOX, { message: "" })) return;
    };
    await expect(refused()).rejects.toMatchObject({ code: "VALIDATION_ERROR" });
  });

  test("a listener that fails ends the run with its failure", async () => {
    await using agents = await runnerBed([definition("mine", ["echo", "hi"])]);
    const onEvent = ({ type }: AgentEvent) => {
      if (type === "text") throw new Error("the listener broke");
    };
    await expect(agents.runner.run(SANDBOX, { message: "m" }, { onEvent })).rejects.toThrow("listener broke");
    expect(agents.runner.active).toBe(0);
  });

  test("closing ends what is under way", async () => {
    await using agents = await runnerBed([sleeper]);
    const running = agents.run({ message: "m" });
    await until("it runs", () => agents.bed.driver.started(SANDBOX).length === 1);
    await agents.runner.close();
    expect((await running).result).toMatchObject({ success: false, errorCode: "SHUTTING_DOWN" });
  });
});
