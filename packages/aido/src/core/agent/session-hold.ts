import type { Execs } from "@aido/sdk";
import { AidoError } from "@aido/sdk/protocol";
import type { Clock } from "../clock.ts";
import type { Store } from "../store/store.ts";
import { execIdOf } from "./agent-run.ts";
import type { AgentRunClaim } from "./agent-session-store.ts";

/** A run whose process has died keeps its session this long at most. */
const HOLD_MS = 30_000;
const RENEW_MS = 10_000;

export interface SessionHoldDeps {
  store: Pick<Store, "agentSessions" | "execs">;
  execs: Execs;
  clock: Clock;
}

export interface TakenSession {
  /** What the agent calls the session; undefined in its first run. */
  readonly reference: string | undefined;
  keepReference(reference: string): Promise<void>;
  /** Until the signal is aborted; `onLost` when another run has it all the same. */
  renewUntil(signal: AbortSignal, onLost: () => void): Promise<void>;
  release(): Promise<void>;
}

/** One run at a time has a session, over all processes that share the store. */
export class SessionHold {
  readonly #deps: SessionHoldDeps;

  constructor(deps: SessionHoldDeps) {
    this.#deps = deps;
  }

  /** Raises AGENT_SESSION_BUSY. What a dead process has left running under the session is ended first. */
  async take(claim: Omit<AgentRunClaim, "until">): Promise<TakenSession> {
    const { store, clock } = this.#deps;
    const { sandboxId, sessionId, runId } = claim;
    const sessions = store.agentSessions;
    const until = () => new Date(clock.now().getTime() + HOLD_MS);
    const { taken, before } = await sessions.take({ ...claim, until: until() }, clock.now());
    if (!taken) throw busy(sessionId);
    try {
      if (before?.runId !== undefined) await this.endProcesses(sandboxId, before.runId);
    } catch (thrown) {
      await sessions.release(sandboxId, sessionId, runId, clock.now());
      throw thrown;
    }
    return {
      reference: before?.reference,
      keepReference: (reference) => sessions.keepReference(sandboxId, sessionId, runId, reference),
      release: () => sessions.release(sandboxId, sessionId, runId, clock.now()),
      renewUntil: async (signal, onLost) => {
        while (!signal.aborted) {
          await clock.sleep(RENEW_MS, signal).catch(() => undefined);
          if (signal.aborted) return;
          const still = await sessions
            .renew({ sandboxId, sessionId, runId, until: until() })
            // A store that is away for a moment is asked again; the hold is longer than that.
            .catch(() => true);
          if (!still) return onLost();
        }
      },
    };
  }

  /** Of a run that is not this process's own. */
  async endProcesses(sandboxId: string, runId: string): Promise<void> {
    const { store, execs } = this.#deps;
    const first = execIdOf(runId, 0);
    const running = (await store.execs.running(sandboxId)).filter(
      ({ id }) => id === first || id.startsWith(`${first}_`),
    );
    await Promise.all(running.map(({ id }) => execs.kill(sandboxId, id)));
    await Promise.all(running.map(({ id }) => execs.wait(sandboxId, id, AbortSignal.timeout(HOLD_MS))));
  }
}

function busy(sessionId: string): AidoError {
  return new AidoError("AGENT_SESSION_BUSY", `The session ${sessionId} is at work on another message`, {
    hint: "Wait for it or cancel it; another sessionId runs beside it.",
    details: { sessionId },
  });
}
