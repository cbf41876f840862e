import type { AgentEvent } from "@aido/sdk/protocol";
import type { AgentCommand, AgentPlace, AgentProcess } from "../../core/agent/agent-adapter.ts";
import { endStrays, RUN_VARIABLE } from "./end-strays.ts";
import { LocalProcess } from "./local-process.ts";

export interface StoryPlaceOptions {
  /** Names this run; no other has the same. */
  readonly run: string;
  readonly workdir: string;
  readonly env: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly onEvent: (event: AgentEvent) => void;
  readonly onTurn: () => void;
  readonly onSign: () => void;
  readonly onStderr: (text: string) => void;
}

/** Where an agent works on a story: the worker's own container, beside the adapter. */
export class StoryPlace implements AgentPlace {
  readonly workdir: string;
  readonly signal: AbortSignal;
  readonly #options: StoryPlaceOptions;
  readonly #processes: LocalProcess[] = [];
  /** Whether the agent is one that can be asked to end before it is made to. */
  canCancel = false;

  constructor(options: StoryPlaceOptions) {
    this.#options = options;
    this.workdir = options.workdir;
    this.signal = options.signal;
  }

  async start(command: AgentCommand): Promise<AgentProcess> {
    this.signal.throwIfAborted();
    this.canCancel ||= command.graceMs !== undefined;
    const { workdir: cwd, env, onSign, onStderr } = this.#options;
    const process = await LocalProcess.start({
      argv: command.argv,
      env: { ...env, ...command.env, [RUN_VARIABLE]: this.#options.run },
      cwd,
      onSign,
      onStderr,
    });
    this.#processes.push(process);
    return process;
  }

  async emit(event: AgentEvent): Promise<void> {
    this.signal.throwIfAborted();
    this.#options.onEvent(event);
  }

  countTurn(): void {
    this.#options.onTurn();
  }

  /** Each story is a session of its own, which nobody goes on with. */
  async keepReference(): Promise<void> {}

  /** All it has started. */
  async end(): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.kill()));
    if (this.#processes.length === 0) return;
    const left = await endStrays(this.#options.run);
    if (left > 0) this.#options.onStderr(`${left} processes of the agent cannot be ended`);
  }
}
