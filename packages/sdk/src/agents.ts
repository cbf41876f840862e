import type { AgentEvent, AgentInfo, AgentRequest, AgentResult } from "./protocol/index.ts";

export interface AgentRunOptions {
  /** An abort cancels the run and ends all its processes. */
  signal?: AbortSignal | undefined;
  /** The next event is read when this one is taken: a slow reader makes the agent wait. */
  onEvent?: ((event: AgentEvent) => void | Promise<void>) | undefined;
}

/** Coding agents that work inside sandboxes. */
export interface Agents {
  list(): Promise<readonly AgentInfo[]>;
  /**
   * Gives an agent one message and resolves with what became of it; an agent that fails is a result too. A session
   * takes one run at a time and keeps what the agent remembers; sessions run beside each other.
   */
  run(sandbox: string, request: AgentRequest, options?: AgentRunOptions): Promise<AgentResult>;
  /** As `run`, event by event; leaving the loop cancels the run. */
  stream(sandbox: string, request: AgentRequest, signal?: AbortSignal): AsyncIterable<AgentEvent>;
  /** Ends the run of a session, or every run in the sandbox; how many there were. */
  cancel(sandbox: string, sessionId?: string): Promise<number>;
}

/** A run's events as a loop reads them, from any implementation of `run`. */
export async function* streamAgent(
  agents: Pick<Agents, "run">,
  sandbox: string,
  request: AgentRequest,
  signal?: AbortSignal,
): AsyncGenerator<AgentEvent, void, undefined> {
  const left = new AbortController();
  const over = signal === undefined ? left.signal : AbortSignal.any([signal, left.signal]);
  let told: AgentEvent | undefined;
  let taken = (): void => undefined;
  let wake = (): void => undefined;
  // The run waits for each event to be taken, so there is never more than one.
  const onEvent = (event: AgentEvent) =>
    new Promise<void>((resolve) => {
      if (left.signal.aborted) return resolve();
      told = event;
      taken = resolve;
      wake();
    });
  let isOver = false;
  const running = agents.run(sandbox, request, { signal: over, onEvent }).finally(() => {
    isOver = true;
    wake();
  });
  running.catch(() => undefined);
  try {
    while (!isOver || told !== undefined) {
      if (told === undefined) {
        await new Promise<void>((resolve) => {
          wake = resolve;
          if (told !== undefined || isOver) resolve();
        });
        continue;
      }
      const event: AgentEvent = told;
      told = undefined;
      yield event;
      taken();
    }
    await running;
  } finally {
    left.abort();
    taken();
    await running.catch(() => undefined);
  }
}
