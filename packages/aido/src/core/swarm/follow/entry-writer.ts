import { type ContainerChanges, updateContainer } from "../state/change-state.ts";
import { isActive } from "../state/swarm-state.ts";
import type { SwarmDeps } from "../swarm-deps.ts";
import { Saved } from "./saved.ts";

export interface EntryOf {
  readonly swarmId: string;
  readonly name: string;
  readonly onError: (thrown: unknown) => void;
  /** Somebody ended the worker before it ran. */
  readonly onEnded: () => void;
}

/** Keeps a worker's entry in the state up to date. An entry that somebody took out stays out, and one that was ended is not begun. */
export class EntryWriter {
  readonly #saved: Saved;
  #unsaved: ContainerChanges = {};
  #problem: unknown;

  constructor(
    { state, clock }: Pick<SwarmDeps, "state" | "clock">,
    { swarmId, name, onError, onEnded }: EntryOf,
  ) {
    this.#saved = new Saved(async () => {
      const changes = this.#unsaved;
      if (Object.keys(changes).length === 0) return;
      this.#unsaved = {};
      try {
        let isEnded = false;
        await state.update((before) => {
          const entry = before.containers.find(({ containerName }) => containerName === name);
          if (before.swarmId !== swarmId || entry === undefined) return before;
          isEnded = begins(changes) && !isActive(entry);
          return isEnded ? before : updateContainer(before, name, changes, clock.now());
        });
        this.#problem = undefined;
        if (isEnded) onEnded();
      } catch (thrown) {
        this.#unsaved = { ...changes, ...this.#unsaved };
        if (this.#problem === undefined) onError(thrown);
        this.#problem = thrown;
      }
    }, onError);
  }

  set(changes: ContainerChanges): void {
    Object.assign(this.#unsaved, changes);
    this.#saved.due();
  }

  /** What could not be written is tried once more. */
  retry(): void {
    if (this.#problem !== undefined) this.#saved.due();
  }

  /** Raises what is in the way when it cannot be written. */
  async flush(): Promise<void> {
    await this.#saved.settled();
    if (this.#problem !== undefined) throw this.#problem;
  }
}

function begins({ status, containerId }: ContainerChanges): boolean {
  return status === "running" || (status === undefined && containerId !== undefined);
}
