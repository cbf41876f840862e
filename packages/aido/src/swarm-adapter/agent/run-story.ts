import { type AgentEvent, AidoError, isAidoError } from "@aido/sdk/protocol";
import type { AgentOutcome, AgentTurn } from "../../core/agent/agent-adapter.ts";
import type { Clock } from "../../core/clock.ts";
import { orAborted } from "../../core/supervisor/time-limit.ts";
import { Stopped } from "../stopped.ts";
import { WorkerFailure } from "../worker-failure.ts";
import type { Budget } from "./budget.ts";
import type { ChosenAgent } from "./choose-agent.ts";
import { StoryPlace } from "./story-place.ts";

const KEPT_CHARS = 16 * 1024;
/** Between the request to stop and the signals, for agents that can be asked. */
const CANCEL_MS = 3_000;
/** After all its processes were killed there is nothing to wait for. */
const GIVE_UP_MS = 5_000;

export interface StoryRun {
  readonly agent: ChosenAgent;
  readonly prompt: string;
  readonly model: string | undefined;
  readonly sessionId: string;
  readonly workdir: string;
  readonly env: Readonly<Record<string, string>>;
  readonly budget: Budget;
  readonly maxSilentMs: number;
  readonly clock: Clock;
  /** Aborted with Stopped. */
  readonly signal: AbortSignal;
  readonly onEvent: (event: AgentEvent) => void;
  readonly onStderr: (text: string) => void;
}

export interface StoryOutcome {
  readonly success: boolean;
  /** What the agent said last, or why it failed. */
  readonly text: string;
}

/**
 * One agent on one story. Nothing of it runs when this settles. Raises Stopped when the worker is to end, and
 * WorkerFailure when no story can be done by this agent.
 */
export async function runStory(run: StoryRun): Promise<StoryOutcome> {
  const { clock, budget, signal } = run;
  signal.throwIfAborted();
  const over = new AbortController();
  const done = new AbortController();
  const onStop = () => over.abort(signal.reason);
  signal.addEventListener("abort", onStop, { once: true });
  let text = "";
  let signAt = clock.now().getTime();
  const place = new StoryPlace({
    run: run.sessionId,
    workdir: run.workdir,
    env: run.env,
    signal: over.signal,
    onSign: () => {
      signAt = clock.now().getTime();
    },
    onTurn: () => budget.countTurn(),
    onEvent: (event) => {
      if (event.type === "text") text = (text + event.text).slice(-KEPT_CHARS);
      if (event.type === "usage") budget.count(event.usage);
      run.onEvent(event);
    },
    onStderr: run.onStderr,
  });
  watchSilence(
    run,
    () => signAt,
    done.signal,
    (reason) => over.abort(reason),
  );
  try {
    const outcome = await unlessStuck(run.agent.adapter.run(toTurn(run), place), place, over.signal, clock);
    over.signal.throwIfAborted();
    if (!outcome.success) budget.checkTurns();
    over.signal.throwIfAborted();
    const said = outcome.response ?? text;
    return outcome.success ? { success: true, text: said } : { success: false, text: outcome.error ?? said };
  } catch (thrown) {
    const cause: unknown = over.signal.aborted ? over.signal.reason : thrown;
    if (cause instanceof Stopped) throw cause;
    if (isAidoError(cause, "AGENT_UNAVAILABLE"))
      throw new WorkerFailure("AGENT_CRASH", cause.message, { cause });
    return { success: false, text: cause instanceof Error ? cause.message : String(cause) };
  } finally {
    done.abort();
    signal.removeEventListener("abort", onStop);
    await place.end();
  }
}

function toTurn(run: StoryRun): AgentTurn {
  return {
    agent: run.agent.definition,
    message: run.prompt,
    model: run.model,
    maxTurns: run.budget.turnsLeft,
    context: undefined,
    sessionId: run.sessionId,
    reference: undefined,
  };
}

/** An agent that shows no sign of life would otherwise keep its worker for ever. */
function watchSilence(
  { clock, maxSilentMs }: StoryRun,
  signAt: () => number,
  done: AbortSignal,
  stop: (reason: AidoError) => void,
): void {
  const watch = async () => {
    for (;;) {
      const leftMs = signAt() + maxSilentMs - clock.now().getTime();
      if (leftMs <= 0) break;
      await clock.sleep(leftMs, done);
    }
    stop(new AidoError("COMMAND_TIMEOUT", `The agent said nothing for ${Math.round(maxSilentMs / 1000)} s`));
  };
  watch().catch(() => undefined);
}

/** Stopping is up to the adapter first, then the processes are ended, then nobody waits any longer. */
async function unlessStuck(
  work: Promise<AgentOutcome>,
  place: StoryPlace,
  over: AbortSignal,
  clock: Clock,
): Promise<AgentOutcome> {
  try {
    return await orAborted(work, over);
  } catch (thrown) {
    if (!over.aborted) throw thrown;
    const settled = new AbortController();
    const ending = work.then(
      () => settled.abort(),
      () => settled.abort(),
    );
    const wait = (ms: number) =>
      Promise.race([ending, clock.sleep(ms, settled.signal).catch(() => undefined)]);
    if (place.canCancel) await wait(CANCEL_MS);
    await place.end();
    await wait(GIVE_UP_MS);
    throw thrown;
  }
}
