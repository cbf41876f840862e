import type { CollectReport, Gc } from "@aido/sdk";

/** Loaded when it is first asked for: few commands collect anything. */
export class DeferredGc implements Gc {
  readonly #open: () => Promise<Gc>;
  #opened: Promise<Gc> | undefined;

  constructor(open: () => Promise<Gc>) {
    this.#open = open;
  }

  async collect(options?: Parameters<Gc["collect"]>[0]): Promise<CollectReport> {
    this.#opened ??= this.#open();
    return await (await this.#opened).collect(options);
  }
}
