import type { CollectReport, Gc } from "../gc.ts";
import type { Transport } from "./transport.ts";

export class HttpGc implements Gc {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  collect(
    options: { dryRun?: boolean | undefined; signal?: AbortSignal | undefined } = {},
  ): Promise<CollectReport> {
    const { dryRun, signal } = options;
    return this.#transport.json<CollectReport>("/api/gc", {
      method: "POST",
      json: { dryRun },
      slow: true,
      signal,
    });
  }
}
