import type { Execs } from "@aido/sdk";
import { type AgentEvent, type AgentUsage, AidoError, isAidoError } from "@aido/sdk/protocol";
import type { Clock } from "../clock.ts";
import { type AgentCommand, type AgentPlace, type AgentProcess, TURNS_USED_UP } from "./agent-adapter.ts";
import { SandboxProcess } from "./sandbox-process.ts";

/** The supervisor ends it this long after its time, should nobody be left to do so earlier. */
const BACKSTOP_MS = 10_000;
const MAX_TEXT_CHARS = 1024 * 1024;
const MAX_NAME_CHARS = 256;
const MAX_INPUT_CHARS = 16 * 1024;

export interface AgentRunOptions {
  readonly id: string;
  readonly sandboxId: string;
  readonly workdir: string;
  readonly timeoutMs: number;
  readonly maxTurns: number | undefined;
  /** What every process of it gets. */
  readonly env: Readonly<Record<string, string>>;
  readonly onEvent: ((event: AgentEvent) => void | Promise<void>) | undefined;
  readonly keepReference: (reference: string) => Promise<void>;
}

/** One run of an agent: its processes, what it has said so far, and the one way to stop it. */
export class AgentRun implements AgentPlace {
  readonly id: string;
  readonly workdir: string;
  usage: AgentUsage = { inputTokens: 0, outputTokens: 0 };
  text = "";
  readonly #options: AgentRunOptions;
  readonly #execs: Execs;
  readonly #clock: Clock;
  readonly #over = new AbortController();
  readonly #startedAt: number;
  #turns = 0;
  readonly #processes: { process: SandboxProcess; graceMs: number }[] = [];

  constructor(execs: Execs, clock: Clock, options: AgentRunOptions) {
    this.#execs = execs;
    this.#clock = clock;
    this.#options = options;
    this.#startedAt = clock.now().getTime();
    this.id = options.id;
    this.workdir = options.workdir;
  }

  get signal(): AbortSignal {
    return this.#over.signal;
  }

  get durationMs(): number {
    return this.#clock.now().getTime() - this.#startedAt;
  }

  /** The first reason counts. */
  stop(reason: AidoError): void {
    this.#over.abort(reason);
  }

  async start(command: AgentCommand): Promise<AgentProcess> {
    this.signal.throwIfAborted();
    const { sandboxId, timeoutMs, env } = this.#options;
    const id = execIdOf(this.id, this.#processes.length);
    const process = new SandboxProcess(this.#execs, sandboxId, id);
    this.#processes.push({ process, graceMs: command.graceMs ?? 0 });
    const leftMs = Math.max(1, timeoutMs - this.durationMs) + BACKSTOP_MS;
    const request = {
      id,
      argv: command.argv,
      env: { ...env, ...command.env },
      stdin: true,
      timeoutMs: leftMs,
    };
    try {
      await this.#execs.start(sandboxId, request, this.signal);
    } catch (thrown) {
      throw isAidoError(thrown, "EXECUTION_FAILED") ? noSuchAgent(command, thrown) : thrown;
    }
    return process;
  }

  /** A stopped agent is heard no more. */
  async emit(event: AgentEvent): Promise<void> {
    this.signal.throwIfAborted();
    await this.tell(event);
  }

  /** Agents are told their limit; one that goes on beyond it is stopped. */
  countTurn(): void {
    this.#turns += 1;
    const { maxTurns } = this.#options;
    if (maxTurns !== undefined && this.#turns > maxTurns) this.stop(usedUp());
  }

  async tell(event: AgentEvent): Promise<void> {
    const told = bounded(event);
    if (told.type === "usage") this.usage = told.usage;
    if (told.type === "text") this.text = (this.text + told.text).slice(0, MAX_TEXT_CHARS);
    await this.#options.onEvent?.(told);
  }

  keepReference(reference: string): Promise<void> {
    return this.#options.keepReference(reference);
  }

  /** Ends all its processes and what they have started: at once, or when they have had their time. */
  async endProcesses(options: { inTime: boolean }): Promise<void> {
    const ends = this.#processes.map(async ({ process, graceMs }) => {
      if (options.inTime && graceMs > 0) {
        const waited = new AbortController();
        await Promise.race([
          process.ended().catch(() => undefined),
          this.#clock.sleep(graceMs, waited.signal).catch(() => undefined),
        ]);
        waited.abort();
      }
      await process.kill().catch((thrown: unknown) => {
        // It never started, or went with its sandbox.
        const isGone = isAidoError(thrown) && ["not_found", "conflict", "unavailable"].includes(thrown.kind);
        if (!isGone) throw thrown;
      });
    });
    await Promise.all(ends);
  }
}

/** The execs of a run are told from all others by their ids, by another process too. */
export function execIdOf(runId: string, index: number): string {
  return index === 0 ? `agent_${runId}` : `agent_${runId}_${index}`;
}

export function clipText(text: string): string {
  return text.length <= MAX_TEXT_CHARS ? text : `${text.slice(0, MAX_TEXT_CHARS)}…`;
}

/** What came out of a sandbox is passed on in bounds, whatever the adapter took it for. */
function bounded(event: AgentEvent): AgentEvent {
  if (event.type === "text") return { ...event, id: clipName(event.id), text: clipText(event.text) };
  if (event.type !== "toolCall") return event;
  const { input, ...rest } = event;
  const isShort = input !== undefined && JSON.stringify(input).length <= MAX_INPUT_CHARS;
  return {
    ...rest,
    id: clipName(event.id),
    name: clipName(event.name),
    ...(isShort ? { input } : {}),
  };
}

function clipName(name: string): string {
  return name.slice(0, MAX_NAME_CHARS);
}

function usedUp(): AidoError {
  return new AidoError("AGENT_FAILED", TURNS_USED_UP, {
    hint: "Give it more with `maxTurns`; its session can be gone on with.",
  });
}

function noSuchAgent(command: AgentCommand, cause: AidoError): AidoError {
  return new AidoError("AGENT_UNAVAILABLE", `The sandbox cannot run the agent: ${cause.message}`, {
    hint: `Use an image that has ${JSON.stringify(command.argv[0])}, or another agent: \`aido agent list\`.`,
    details: cause.details,
    cause,
  });
}
