import { randomBytes, randomUUID } from "node:crypto";
import { type AgentRunOptions, type Agents, type Execs, streamAgent } from "@aido/sdk";
import {
  type AgentEvent,
  type AgentInfo,
  type AgentRequest,
  type AgentResult,
  AidoError,
  isAidoError,
  toAidoError,
} from "@aido/sdk/protocol";
import type { Clock } from "../clock.ts";
import type { EvidenceSink } from "../evidence/evidence-sink.ts";
import { AGENT_LABEL } from "../job/job-labels.ts";
import type { SandboxResolver } from "../sandbox/sandbox-resolver.ts";
import type { SandboxRecord, Store } from "../store/store.ts";
import type { AgentDefinition, AgentOutcome, AgentTurn } from "./agent-adapter.ts";
import type { AgentRegistry } from "./agent-registry.ts";
import { AgentRun, clipText } from "./agent-run.ts";
import { type CheckedRequest, checkAgentRequest } from "./check-agent-request.ts";
import { SessionHold, type TakenSession } from "./session-hold.ts";

export interface AgentRunnerDeps {
  registry: AgentRegistry;
  sandboxes: SandboxResolver;
  execs: Execs;
  store: Pick<Store, "agentSessions" | "execs">;
  evidence: EvidenceSink;
  clock: Clock;
}

/** A stopped agent that does not end although it was killed is waited for no longer than this. */
const GIVE_UP_MS = 15_000;
/** What an agent brings upon itself is its result; anything else is aido's failure to run it. */
const AGENTS_OWN: ReadonlySet<string> = new Set([
  "AGENT_FAILED",
  "COMMAND_TIMEOUT",
  "OUT_OF_MEMORY",
  "PAYLOAD_TOO_LARGE",
  "CANCELLED",
]);

/** Runs agents in sandboxes: who may, for how long, under which session. How to speak to them is the adapters'. */
export class AgentRunner implements Agents {
  readonly #deps: AgentRunnerDeps;
  readonly #hold: SessionHold;
  /** By sandbox and session. */
  readonly #runs = new Map<string, { run: AgentRun; done: Promise<unknown> }>();

  constructor(deps: AgentRunnerDeps) {
    this.#deps = deps;
    this.#hold = new SessionHold(deps);
  }

  /** How many runs this process has under way. */
  get active(): number {
    return this.#runs.size;
  }

  async list(): Promise<readonly AgentInfo[]> {
    return this.#deps.registry.list();
  }

  stream(sandbox: string, request: AgentRequest, signal?: AbortSignal): AsyncIterable<AgentEvent> {
    return streamAgent(this, sandbox, request, signal);
  }

  async run(sandbox: string, request: AgentRequest, options: AgentRunOptions = {}): Promise<AgentResult> {
    const checked = checkAgentRequest(request);
    options.signal?.throwIfAborted();
    const record = await this.#deps.sandboxes.resolveRunning(sandbox);
    const agent = await this.#choose(record, checked);
    const runId = randomBytes(16).toString("hex");
    const sessionId = checked.sessionId ?? `session-${randomUUID()}`;
    const held = await this.#hold.take({ sandboxId: record.id, sessionId, agent: agent.identifier, runId });
    const run = new AgentRun(this.#deps.execs, this.#deps.clock, {
      id: runId,
      sandboxId: record.id,
      workdir: record.workdir,
      timeoutMs: checked.timeoutMs,
      maxTurns: checked.maxTurns,
      env: environment(agent, checked, { runId, sessionId }),
      onEvent: options.onEvent,
      keepReference: (reference) => held.keepReference(reference),
    });
    const key = keyOf(record.id, sessionId);
    const work = this.#supervise(run, held, { record, agent, checked, sessionId }, options.signal);
    this.#runs.set(key, { run, done: work.catch(() => undefined) });
    try {
      return await work;
    } finally {
      this.#runs.delete(key);
    }
  }

  async cancel(sandbox: string, sessionId?: string): Promise<number> {
    const { sandboxes, store } = this.#deps;
    const { id } = await sandboxes.resolve(sandbox);
    const wanted = sessionId === undefined || sessionId === "" ? undefined : sessionId;
    const sessions = (await store.agentSessions.list(id)).filter(
      (session) => session.runId !== undefined && (wanted === undefined || session.sessionId === wanted),
    );
    await Promise.all(
      sessions.map(async (session) => {
        const own = this.#runs.get(keyOf(id, session.sessionId));
        if (own === undefined) return this.#hold.endProcesses(id, session.runId ?? "");
        own.run.stop(new AidoError("CANCELLED", "The run was cancelled"));
        await own.done;
      }),
    );
    return sessions.length;
  }

  /** Ends all runs of this process: nobody would hear their results. */
  async close(): Promise<void> {
    const runs = [...this.#runs.values()];
    for (const { run } of runs) run.stop(new AidoError("SHUTTING_DOWN", "Aido is shutting down"));
    await Promise.all(runs.map(({ done }) => done));
  }

  /** A session stays with the agent that began it, because no other understands it. */
  async #choose(record: SandboxRecord, { identifier, sessionId }: CheckedRequest): Promise<AgentDefinition> {
    const { registry, store } = this.#deps;
    const session = sessionId === undefined ? undefined : await store.agentSessions.get(record.id, sessionId);
    const agent = registry.choose([identifier, session?.agent, record.labels[AGENT_LABEL]]);
    if (session === undefined || session.agent === agent.identifier) return agent;
    throw new AidoError(
      "VALIDATION_ERROR",
      `The session ${session.sessionId} belongs to the agent ${session.agent}, not to ${agent.identifier}`,
      { hint: "Leave the agent away to go on with it, or begin another session." },
    );
  }

  /** From the first event to the last, whatever happens: nothing of a run is left when this settles. */
  async #supervise(
    run: AgentRun,
    held: TakenSession,
    turn: { record: SandboxRecord; agent: AgentDefinition; checked: CheckedRequest; sessionId: string },
    signal: AbortSignal | undefined,
  ): Promise<AgentResult> {
    const { clock, evidence } = this.#deps;
    const { record, agent, checked, sessionId } = turn;
    const done = new AbortController();
    const onAbort = () =>
      run.stop(new AidoError("CANCELLED", "The caller has left", { cause: signal?.reason }));
    if (signal?.aborted) onAbort();
    signal?.addEventListener("abort", onAbort, { once: true });
    clock.sleep(checked.timeoutMs, done.signal).then(
      () => run.stop(timedOut(checked.timeoutMs)),
      () => undefined,
    );
    const holding = held.renewUntil(done.signal, () => run.stop(lostSession(sessionId)));
    const identity = { agent: agent.identifier, sessionId, traceId: run.id };
    let outcome: AgentOutcome & { code?: AidoError["code"] };
    try {
      await evidence.append(record.id, "agent.started", identity);
      await run.tell({ type: "start", identifier: agent.identifier, sessionId, traceId: run.id });
      outcome = await this.#attempt(run, { ...checked, agent, sessionId, reference: held.reference });
    } catch (thrown) {
      const { code } = toAidoError(thrown);
      await evidence.append(record.id, "agent.ended", { ...identity, success: false, errorCode: code });
      throw thrown;
    } finally {
      done.abort();
      signal?.removeEventListener("abort", onAbort);
      await holding;
      await held.release();
    }
    const success = outcome.success;
    const usage = outcome.usage ?? run.usage;
    const result: AgentResult = {
      success,
      response: clipText(outcome.response ?? run.text),
      error: success ? undefined : (outcome.error ?? "The agent failed"),
      errorCode: success ? undefined : (outcome.code ?? "AGENT_FAILED"),
      traceId: run.id,
      durationMs: run.durationMs,
      usage,
      sessionId,
    };
    const { errorCode, durationMs } = result;
    await evidence.append(record.id, "agent.ended", { ...identity, success, errorCode, durationMs, usage });
    if (signal?.aborted) throw signal.reason;
    if (!success) {
      await run.tell({ type: "error", code: errorCode ?? "AGENT_FAILED", message: result.error ?? "" });
    }
    await run.tell({ type: "result", result });
    return result;
  }

  /** The agent's own failures become its outcome. Processes of a run that does not end well are ended with it. */
  async #attempt(run: AgentRun, turn: AgentTurn): Promise<AgentOutcome & { code?: AidoError["code"] }> {
    const adapter = await this.#deps.registry.adapterFor(turn.agent);
    const work = adapter.run(turn, run);
    try {
      return await this.#unlessStuck(work, run);
    } catch (thrown) {
      await run.endProcesses({ inTime: false });
      const failure: unknown = run.signal.aborted ? run.signal.reason : thrown;
      if (!isAidoError(failure) || !(AGENTS_OWN.has(failure.code) || run.signal.aborted)) throw failure;
      return { success: false, error: failure.message, code: failure.code };
    }
  }

  /** Stopping is up to the adapter first, then the processes are killed, then nobody waits any longer. */
  async #unlessStuck(work: Promise<AgentOutcome>, run: AgentRun): Promise<AgentOutcome> {
    const { clock } = this.#deps;
    const settled = new AbortController();
    const stuck = new Promise<never>((_, reject) => {
      const onStop = async () => {
        await run.endProcesses({ inTime: true }).catch(() => undefined);
        await clock.sleep(GIVE_UP_MS, settled.signal).catch(() => undefined);
        reject(run.signal.reason as Error);
      };
      if (run.signal.aborted) void onStop();
      else run.signal.addEventListener("abort", () => void onStop(), { once: true, signal: settled.signal });
    });
    stuck.catch(() => undefined);
    try {
      const outcome = await Promise.race([work, stuck]);
      // An agent that made it just so, in spite of being stopped, has still not done what was asked.
      run.signal.throwIfAborted();
      return outcome;
    } finally {
      settled.abort();
      work.catch(() => undefined);
    }
  }
}

function keyOf(sandboxId: string, sessionId: string): string {
  return `${sandboxId}/${sessionId}`;
}

function environment(
  agent: AgentDefinition,
  { context }: CheckedRequest,
  { runId, sessionId }: { runId: string; sessionId: string },
): Readonly<Record<string, string>> {
  return {
    ...agent.env,
    AIDO_AGENT_SESSION: sessionId,
    AIDO_AGENT_TRACE: runId,
    ...(context === undefined ? {} : { AIDO_AGENT_CONTEXT: JSON.stringify(context) }),
  };
}

function timedOut(timeoutMs: number): AidoError {
  return new AidoError("COMMAND_TIMEOUT", `The agent did not end within ${timeoutMs / 1000} s`, {
    hint: "Give it more time with `timeoutMs`; its session can be gone on with.",
  });
}

function lostSession(sessionId: string): AidoError {
  return new AidoError("CANCELLED", `Another run has taken the session ${sessionId} over`);
}
