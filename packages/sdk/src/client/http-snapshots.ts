import type { RestoreSnapshot, SnapshotInfo, Snapshots, TakeSnapshot } from "../snapshots.ts";
import type { Transport } from "./transport.ts";

/** A workspace of many gigabytes to a slow store. */
const LONGEST_MS = 6 * 3_600_000;

export class HttpSnapshots implements Snapshots {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async take(sandbox: string, options: TakeSnapshot = {}): Promise<SnapshotInfo> {
    const { destination, includeWorkspace, includeState, signal } = options;
    const reply = await this.#transport.json<Omit<SnapshotInfo, "createdAt"> & { createdAt: string }>(
      at(sandbox, "snapshot"),
      { method: "POST", json: { destination, includeWorkspace, includeState }, waitMs: LONGEST_MS, signal },
    );
    return { ...reply, createdAt: new Date(reply.createdAt) };
  }

  async restore(sandbox: string, url: string, options: RestoreSnapshot = {}): Promise<void> {
    const { sha256, signal } = options;
    const json = { url, sha256 };
    await this.#transport.json(at(sandbox, "restore"), { method: "POST", json, waitMs: LONGEST_MS, signal });
  }
}

const at = (sandbox: string, verb: string): string => `/api/sandbox/${encodeURIComponent(sandbox)}/${verb}`;
