import { setTimeout as sleep } from "node:timers/promises";
import { AidoError, isAidoError } from "@aido/sdk/protocol";
import type { Container } from "../../core/driver/driver.ts";
import type { Engine } from "./engine.ts";
import { LABEL, type Transport } from "./labels.ts";
import { toContainer } from "./to-container.ts";

/** Which container a sandbox is and how it is reached; fixed for the container's life. */
export interface Place {
  readonly sandboxId: string;
  readonly containerId: string;
  readonly transport: Transport;
  readonly hasOwnNetwork: boolean;
}

const INSPECTS_AT_ONCE = 8;
const NAMED_DEADLINE_MS = 30_000;
const NAMED_POLL_MS = 20;
const FOREIGN_LOOKS = 5;

/** Finds the containers of one scope by their labels. */
export class ContainerIndex {
  readonly #engine: Engine;
  readonly #scope: string;
  readonly #places = new Map<string, Place>();

  constructor(engine: Engine, scope: string) {
    this.#engine = engine;
    this.#scope = scope;
  }

  async get(sandboxId: string): Promise<Place> {
    const place = this.#places.get(sandboxId) ?? (await this.findAll(sandboxId))[0];
    if (place !== undefined) return place;
    throw new AidoError("CONTAINER_NOT_FOUND", `Sandbox ${sandboxId} has no container`, {
      hint: "`aido ls --all` lists every sandbox.",
      details: { sandboxId },
    });
  }

  /** The one that is known is asked for itself; only when it is gone, or none is known, are they all looked through. */
  async current(sandboxId: string): Promise<Container | undefined> {
    const known = this.#places.get(sandboxId);
    const container = known === undefined ? undefined : await this.find(sandboxId, known.containerId);
    if (container !== undefined) return container;
    const place = (await this.findAll(sandboxId))[0];
    return place === undefined ? undefined : this.find(sandboxId, place.containerId);
  }

  /** Without asking the engine. */
  known(sandboxId: string): Place | undefined {
    return this.#places.get(sandboxId);
  }

  remember(place: Place): void {
    this.#places.set(place.sandboxId, place);
  }

  /** Usually one; an interrupted replacement can leave two. */
  async findAll(sandboxId: string): Promise<readonly Place[]> {
    const places = await this.#listPlaces([`${LABEL.sandbox}=${sandboxId}`]);
    if (places[0] === undefined) this.#places.delete(sandboxId);
    return places;
  }

  /** The engine takes a name before the container can be seen. Undefined when the name turns out to be someone else's. */
  async awaitNamed(sandboxId: string, name: string): Promise<Container | undefined> {
    const deadline = performance.now() + NAMED_DEADLINE_MS;
    let seenForeign = 0;
    while (performance.now() < deadline) {
      const place = (await this.findAll(sandboxId))[0];
      // It can be listed a moment before it can be inspected.
      const made = place && (await this.find(sandboxId, place.containerId));
      if (made !== undefined) return made;
      const holder = await this.find(sandboxId, name);
      // A container that is being made may show no labels yet, so one look is not enough to call it someone else's.
      if (holder !== undefined && holder.sandboxId !== sandboxId && ++seenForeign === FOREIGN_LOOKS)
        return undefined;
      await sleep(NAMED_POLL_MS);
    }
    return undefined;
  }

  forget(sandboxId: string): void {
    this.#places.delete(sandboxId);
  }

  async list(): Promise<readonly Container[]> {
    const places = await this.#listPlaces([LABEL.sandbox]);
    const containers: Container[] = [];
    for (let at = 0; at < places.length; at += INSPECTS_AT_ONCE) {
      const some = places.slice(at, at + INSPECTS_AT_ONCE);
      const found = await Promise.all(some.map((each) => this.find(each.sandboxId, each.containerId)));
      containers.push(...found.filter((container) => container !== undefined));
    }
    return containers;
  }

  async find(sandboxId: string, containerId: string): Promise<Container | undefined> {
    try {
      return await this.inspect(sandboxId, containerId);
    } catch (thrown) {
      if (isAidoError(thrown, "CONTAINER_NOT_FOUND")) return undefined;
      throw thrown;
    }
  }

  async inspect(sandboxId: string, containerId: string): Promise<Container> {
    const container = this.#engine.docker.getContainer(encodeURIComponent(containerId));
    const raw = await this.#engine.call({ doing: "inspecting the sandbox", sandboxId }, (abortSignal) =>
      container.inspect({ abortSignal }),
    );
    return toContainer(raw);
  }

  async #listPlaces(labels: readonly string[]): Promise<readonly Place[]> {
    const filters = { label: [...labels, `${LABEL.scope}=${this.#scope}`] };
    const found = await this.#engine.call({ doing: "listing sandboxes" }, (abortSignal) =>
      this.#engine.docker.listContainers({ all: true, filters, abortSignal }),
    );
    return found.map((each) => {
      const place: Place = {
        sandboxId: each.Labels[LABEL.sandbox] ?? "",
        containerId: each.Id,
        transport: each.Labels[LABEL.transport] === "exec" ? "exec" : "socket",
        hasOwnNetwork: each.Labels[LABEL.network] === "isolated",
      };
      this.#places.set(place.sandboxId, place);
      return place;
    });
  }
}
