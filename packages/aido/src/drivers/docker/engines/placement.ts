import { AidoError } from "@aido/sdk/protocol";
import type { ContainerSpec } from "../../../core/driver/driver.ts";
import type { PullOptions } from "../pull-image.ts";
import { type AnEngine, answers } from "./answers.ts";

/** Which engine gets a new sandbox: of those that answer and can have it, the one with the fewest that run. */
export class Placement {
  readonly #engines: readonly AnEngine[];
  /** Being made there by this process, and not to be seen there yet. */
  readonly #making = new Map<string, number>();
  readonly #tried = new Set<string>();
  readonly #fetching = new Set<Promise<void>>();
  readonly #closing = new AbortController();

  constructor(engines: readonly AnEngine[]) {
    this.#engines = engines;
  }

  /**
   * Resolves when one engine has it. The others get it meanwhile, each asked for once by this process: an image that
   * no registry has stays where it is.
   */
  async ensureImage(image: string, options: PullOptions): Promise<void> {
    const { found, silent } = await answers(this.#engines, ({ driver }) =>
      driver.hasImage(image, options.signal),
    );
    if (found.length === 0) throw silent[0]?.error;
    const without = found.filter(([, has]) => !has).map(([engine]) => engine);
    if (without.length < found.length) {
      for (const engine of without) this.#fetch(engine, image);
      return;
    }
    const { signal, onProgress } = options;
    const given = { ...(signal && { signal }), ...(onProgress && { onProgress }) };
    const pulls = without.map(({ driver }) => driver.ensureImage(image, given));
    await Promise.any(pulls).catch((thrown: AggregateError) => {
      throw thrown.errors[0];
    });
  }

  async place<T>(
    spec: ContainerSpec,
    signal: AbortSignal | undefined,
    make: (engine: AnEngine) => Promise<T>,
  ): Promise<T> {
    const engine = await this.#choose(spec, signal);
    try {
      return await make(engine);
    } finally {
      this.#count(engine, -1);
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled(this.#fetching);
  }

  /** Counts as being made there from now on. */
  async #choose(spec: ContainerSpec, signal: AbortSignal | undefined): Promise<AnEngine> {
    const image = spec.committed ?? spec.image;
    const { found, silent } = await answers(this.#engines, async ({ driver, local }) => {
      const [containers, capabilities, hasImage] = await Promise.all([
        driver.list(),
        driver.capabilities(signal),
        driver.hasImage(image, signal),
      ]);
      const network = spec.network === "isolated" ? "bridge" : spec.network;
      const isFit =
        capabilities.isolations.includes(spec.isolation) &&
        capabilities.networks.includes(network) &&
        (local || spec.mounts.length === 0);
      return { running: containers.filter(({ state }) => state === "running").length, isFit, hasImage };
    });
    signal?.throwIfAborted();
    if (found.length === 0) throw silent[0]?.error;
    const fit = found.filter(([, { isFit, hasImage }]) => isFit && hasImage);
    const loadOf = ([{ address }, { running }]: (typeof fit)[number]) =>
      running + (this.#making.get(address) ?? 0);
    const [best] = fit.toSorted((a, b) => loadOf(a) - loadOf(b));
    if (best !== undefined) return this.#counted(best[0]);
    // The image of a sandbox whose engine does not answer is not lost.
    if (spec.committed !== undefined && silent[0] !== undefined) throw silent[0].error;
    const [first] = found.filter(([, { isFit }]) => isFit);
    if (first !== undefined) return this.#counted(first[0]);
    throw new AidoError(
      "ISOLATION_UNAVAILABLE",
      `No engine that answers can give isolation ${spec.isolation}, network ${spec.network} and what is mounted`,
      { hint: "`aido doctor` shows what each can give.", details: { isolation: spec.isolation } },
    );
  }

  #fetch({ address, driver }: AnEngine, image: string): void {
    const key = `${address} ${image}`;
    if (this.#tried.has(key)) return;
    this.#tried.add(key);
    const fetching = driver
      .ensureImage(image, { signal: this.#closing.signal })
      .catch(() => undefined)
      .finally(() => this.#fetching.delete(fetching));
    this.#fetching.add(fetching);
  }

  /** With no await since the engines were compared: whoever compares next must see it. */
  #counted(engine: AnEngine): AnEngine {
    this.#count(engine, 1);
    return engine;
  }

  #count({ address }: AnEngine, change: number): void {
    this.#making.set(address, (this.#making.get(address) ?? 0) + change);
  }
}
