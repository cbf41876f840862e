import type { AgentUsage as StoryUsage } from "@aido/sdk/protocol";
import type { AdapterOptions } from "../../core/swarm/messages/adapter-environment.ts";
import type { AgentUsage } from "../../core/swarm/messages/message.ts";
import { Stopped } from "../stopped.ts";

/** What the worker's agents have used in all, and the limits on it. */
export class Budget {
  readonly #limits: AdapterOptions;
  readonly #stop: (reason: Stopped) => void;
  #before: StoryUsage = { inputTokens: 0, outputTokens: 0 };
  #story: StoryUsage = { inputTokens: 0, outputTokens: 0 };
  #turns = 0;

  constructor(limits: AdapterOptions, stop: (reason: Stopped) => void) {
    this.#limits = limits;
    this.#stop = stop;
  }

  get usage(): AgentUsage {
    return {
      turns: this.#turns,
      inputTokens: this.#before.inputTokens + this.#story.inputTokens,
      outputTokens: this.#before.outputTokens + this.#story.outputTokens,
    };
  }

  get turnsLeft(): number | undefined {
    const { maxTurns } = this.#limits;
    return maxTurns === undefined ? undefined : Math.max(1, maxTurns - this.#turns);
  }

  countTurn(): void {
    this.#turns += 1;
    const { maxTurns } = this.#limits;
    // The last turn that is allowed may still be used to its end.
    if (maxTurns !== undefined && this.#turns > maxTurns) this.#reached("turns", "AIMI_MAX_TURNS", maxTurns);
  }

  /** All of this story so far. */
  count(usage: StoryUsage): void {
    this.#story = usage;
    this.#checkTokens();
  }

  /** Before another story begins: what is used up is not begun with. */
  nextStory(): void {
    const { inputTokens, outputTokens } = this.usage;
    this.#before = { inputTokens, outputTokens };
    this.#story = { inputTokens: 0, outputTokens: 0 };
    this.checkTurns();
    this.#checkTokens();
  }

  /** An agent that kept the number of turns itself has not failed. */
  checkTurns(): void {
    const { maxTurns } = this.#limits;
    if (maxTurns !== undefined && this.#turns >= maxTurns) this.#reached("turns", "AIMI_MAX_TURNS", maxTurns);
  }

  #checkTokens(): void {
    const { maxTokens } = this.#limits;
    const { inputTokens, outputTokens } = this.usage;
    if (maxTokens !== undefined && inputTokens + outputTokens >= maxTokens) {
      this.#reached("tokens", "AIMI_MAX_TOKENS", maxTokens);
    }
  }

  #reached(what: string, name: string, limit: number): void {
    this.#stop(new Stopped("budget", `The worker's budget of ${limit} ${what} is used up (${name})`));
  }
}
