import { type ContainerChanges, updateContainer } from "../state/change-state.ts";
import { Saved } from "./saved.ts";
import type { SwarmDeps } from "./swarm-deps.ts";

/** Keeps a worker's entry in the state up to date. An entry that somebody took out stays out. */
export class EntryWriter {
  readonly #saved: Saved;
  #unsaved: ContainerChanges = {};
  #problem: unknown;

  constructor(
    { state, clock }: Pick<SwarmDeps, "state" | "clock">,
    { swarmId, name, onError }: { swarmId: string; name: string; onError: (thrown: unknown) => void },
  ) {
    this.#saved = new Saved(async () => {
      const changes = this.#unsaved;
      if (Object.keys(changes).length === 0) return;
      this.#unsaved = {};
      try {
        await state.update((before) => {
          const isThere =
            before.swarmId === swarmId && before.containers.some((entry) => entry.containerName === name);
          return isThere ? updateContainer(before, name, changes, clock.now()) : before;
        });
        this.#problem = undefined;
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
