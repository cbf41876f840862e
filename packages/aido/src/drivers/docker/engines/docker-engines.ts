import type { Duplex } from "node:stream";
import { AidoError, isAidoError } from "@aido/sdk/protocol";
import type {
  CommittedImage,
  Container,
  ContainerSpec,
  ContainerUsage,
  Driver,
  DriverCapabilities,
} from "../../../core/driver/driver.ts";
import type { PullOptions } from "../pull-image.ts";
import { type AnEngine, answers } from "./answers.ts";
import { EnginePlaces } from "./engine-places.ts";
import { EnginesImages } from "./engines-images.ts";
import { mergeCapabilities } from "./merge-capabilities.ts";
import { Placement } from "./placement.ts";

export interface DockerEnginesOptions {
  readonly engines: readonly AnEngine[];
  /** Directory of aido's own that says on which engine each sandbox is. */
  readonly places: string;
}

/**
 * Sandboxes as containers of several Docker engines. A new one goes to the least loaded that can have it and stays
 * there. An engine that does not answer takes its own sandboxes with it and no other.
 */
export class DockerEngines implements Driver {
  readonly name = "docker";
  readonly images: EnginesImages;
  readonly #engines: readonly AnEngine[];
  readonly #addresses: readonly string[];
  readonly #places: EnginePlaces;
  readonly #placement: Placement;

  constructor({ engines, places }: DockerEnginesOptions) {
    this.#engines = engines;
    this.#addresses = engines.map(({ address }) => address);
    this.#places = new EnginePlaces(places);
    this.#placement = new Placement(engines);
    this.images = new EnginesImages(engines);
  }

  async capabilities(signal?: AbortSignal): Promise<DriverCapabilities> {
    const { found, silent } = await answers(this.#engines, ({ driver }) => driver.capabilities(signal));
    signal?.throwIfAborted();
    if (found.length === 0) throw silent[0]?.error;
    return mergeCapabilities(
      found.map(([{ address }, capabilities]) => [address, capabilities]),
      silent.map(({ error }) => `${error.message}. Its sandboxes are out of reach.`),
    );
  }

  async hasImage(image: string, signal?: AbortSignal): Promise<boolean> {
    const { found, silent } = await answers(this.#engines, ({ driver }) => driver.hasImage(image, signal));
    if (found.length === 0) throw silent[0]?.error;
    return found.some(([, has]) => has);
  }

  standIn(): undefined {
    return undefined;
  }

  ensureImage(image: string, options: PullOptions = {}): Promise<void> {
    return this.#placement.ensureImage(image, options);
  }

  async create(spec: ContainerSpec, signal?: AbortSignal): Promise<Container> {
    const { id, engine } = { id: spec.sandboxId, engine: await this.#find(spec.sandboxId) };
    if (engine !== undefined) return await engine.driver.create(spec, signal);
    return await this.#placement.place(spec, signal, async (chosen) => {
      this.#places.put(chosen.address, id);
      try {
        return await chosen.driver.create(spec, signal);
      } catch (thrown) {
        // Unless nobody knows what became of it.
        if (!isAidoError(thrown, "RUNTIME_UNAVAILABLE") && signal?.aborted !== true) {
          this.#places.remove(chosen.address, id);
        }
        throw thrown;
      }
    });
  }

  async start(sandboxId: string, signal?: AbortSignal): Promise<void> {
    await (await this.#get(sandboxId)).start(sandboxId, signal);
  }

  async stop(sandboxId: string, graceMs: number, signal?: AbortSignal): Promise<void> {
    await (await this.#find(sandboxId))?.driver.stop(sandboxId, graceMs, signal);
  }

  async remove(sandboxId: string): Promise<void> {
    // What an engine still has that is no longer in the settings is nobody's here.
    this.#places.forgetElsewhere(this.#addresses, sandboxId);
    const engine = await this.#find(sandboxId);
    if (engine === undefined) return;
    await engine.driver.remove(sandboxId);
    await this.#leave(engine, sandboxId);
  }

  async inspect(sandboxId: string): Promise<Container | undefined> {
    return await (await this.#find(sandboxId))?.driver.inspect(sandboxId);
  }

  async list(): Promise<readonly Container[]> {
    const { found, silent } = await answers(this.#engines, ({ driver }) => driver.list());
    if (found.length === 0) throw silent[0]?.error;
    return [
      ...found.flatMap(([, containers]) => containers),
      ...silent.flatMap(({ engine }) => this.#places.of(engine.address).map(unreachable)),
      ...this.#places.elsewhere(this.#addresses).map(unreachable),
    ];
  }

  async commit(sandboxId: string, signal?: AbortSignal): Promise<CommittedImage> {
    return await (await this.#get(sandboxId)).commit(sandboxId, signal);
  }

  async removeImage(reference: string): Promise<boolean> {
    const { found, silent } = await answers(this.#engines, ({ driver }) => driver.committedImages());
    for (const [engine, images] of found) {
      const image = images.find((each) => each.reference === reference);
      if (image === undefined) continue;
      const isGone = await engine.driver.removeImage(reference);
      if (isGone) await this.#leave(engine, image.sandboxId);
      return isGone;
    }
    const [first] = found;
    if (first === undefined || silent.length > 0) throw silent[0]?.error;
    return await first[0].driver.removeImage(reference);
  }

  /** Of all sandboxes, those on engines that answer. */
  async committedImages(sandboxId?: string): Promise<readonly CommittedImage[]> {
    const engine = sandboxId === undefined ? undefined : this.#placed(sandboxId);
    if (engine !== undefined) return await engine.driver.committedImages(sandboxId);
    const { found } = await answers(this.#engines, ({ driver }) => driver.committedImages(sandboxId));
    const images = found.flatMap(([, each]) => each);
    return images.sort((a, b) => b.createdAt.getTime() - a.createdAt.getTime());
  }

  async connect(sandboxId: string, signal?: AbortSignal): Promise<Duplex> {
    return await (await this.#get(sandboxId)).connect(sandboxId, signal);
  }

  async usage(sandboxId: string): Promise<ContainerUsage> {
    return await (await this.#get(sandboxId)).usage(sandboxId);
  }

  async written(sandboxId: string, signal?: AbortSignal): Promise<number | undefined> {
    return await (await this.#get(sandboxId)).written(sandboxId, signal);
  }

  async watch(onEnd: (sandboxId: string) => void, signal: AbortSignal): Promise<void> {
    await Promise.all(this.#engines.map(({ driver }) => driver.watch(onEnd, signal)));
  }

  async close(): Promise<void> {
    await this.#placement.close();
    await Promise.all(this.#engines.map(({ driver }) => driver.close()));
  }

  #placed(sandboxId: string): AnEngine | undefined {
    return this.#engines.find(({ address }) => this.#places.has(address, sandboxId));
  }

  /** The engine that has it. One from before there were several is looked for on those that answer. */
  async #find(sandboxId: string): Promise<AnEngine | undefined> {
    const placed = this.#placed(sandboxId);
    if (placed !== undefined) return placed;
    if (this.#places.elsewhere(this.#addresses).includes(sandboxId)) throw elsewhere(sandboxId);
    const { found } = await answers(this.#engines, ({ driver }) => driver.inspect(sandboxId));
    const engine = found.find(([, container]) => container !== undefined)?.[0];
    if (engine !== undefined) this.#places.put(engine.address, sandboxId);
    return engine;
  }

  async #get(sandboxId: string): Promise<Driver> {
    // Refused as any engine refuses what it does not have.
    return ((await this.#find(sandboxId)) ?? (this.#engines[0] as AnEngine)).driver;
  }

  /** Until its container and every image of it are gone, a sandbox stays where those are. */
  async #leave(engine: AnEngine, sandboxId: string): Promise<void> {
    const { driver, address } = engine;
    if ((await driver.inspect(sandboxId)) !== undefined) return;
    if ((await driver.committedImages(sandboxId)).length === 0) this.#places.remove(address, sandboxId);
  }
}

function unreachable(sandboxId: string): Container {
  return {
    ...{ sandboxId, containerId: "", state: "unreachable", image: "", user: { uid: 0, gid: 0 } },
    ...{ exitCode: undefined, outOfMemory: false, startedAt: undefined, finishedAt: undefined },
  };
}

function elsewhere(sandboxId: string): AidoError {
  return new AidoError(
    "RUNTIME_UNAVAILABLE",
    `Sandbox ${sandboxId} is on an engine that is not used any more`,
    {
      hint: `Add the engine's address to dockerHosts again, or give the sandbox up with \`aido rm ${sandboxId}\`.`,
      details: { sandboxId },
    },
  );
}
