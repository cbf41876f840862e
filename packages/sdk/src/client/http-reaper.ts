import type { Reaper, ReapReport } from "../reaper.ts";
import type { Transport } from "./transport.ts";

export class HttpReaper implements Reaper {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  reap(
    options: { dryRun?: boolean | undefined; signal?: AbortSignal | undefined } = {},
  ): Promise<ReapReport> {
    const { dryRun, signal } = options;
    return this.#transport.json<ReapReport>("/api/reap", {
      method: "POST",
      json: { dryRun },
      slow: true,
      signal,
    });
  }
}
