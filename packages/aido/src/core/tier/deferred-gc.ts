import type { CollectReport, Gc } from "@aido/sdk";

/** Uploads to places that users have named go at their own pace and keep nothing else waiting. */
export type Lane = "ours" | "theirs";

export interface TierGc extends Gc {
  /** Both lanes unless one is named. */
  collect(options?: Parameters<Gc["collect"]>[0] & { only?: Lane | undefined }): Promise<CollectReport>;
}

/** Loaded when it is first asked for: few commands collect anything. */
export class DeferredGc implements TierGc {
  readonly #open: () => Promise<TierGc>;
  #opened: Promise<TierGc> | undefined;

  constructor(open: () => Promise<TierGc>) {
    this.#open = open;
  }

  async collect(options?: Parameters<TierGc["collect"]>[0]): Promise<CollectReport> {
    this.#opened ??= this.#open();
    return await (await this.#opened).collect(options);
  }
}
