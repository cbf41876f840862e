import type { Batches } from "../jobs.ts";
import type { BatchInfo } from "../protocol/index.ts";
import type { BatchReply } from "../schemas/index.ts";
import type { Transport } from "./transport.ts";

const PATH = "/api/batches";
const one = (id: string): string => `${PATH}/${encodeURIComponent(id)}`;

export class HttpBatches implements Batches {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async list(): Promise<readonly BatchInfo[]> {
    const reply = await this.#transport.json<{ batches: BatchReply[] }>(PATH, { repeatable: true });
    return reply.batches.map(toInfo);
  }

  async get(batchId: string): Promise<BatchInfo> {
    return toInfo(await this.#transport.json<BatchReply>(one(batchId), { repeatable: true }));
  }

  async cancel(batchId: string): Promise<BatchInfo> {
    const call = { method: "DELETE", repeatable: true, slow: true } as const;
    return toInfo(await this.#transport.json<BatchReply>(one(batchId), call));
  }
}

function toInfo(reply: BatchReply): BatchInfo {
  return {
    ...reply,
    createdAt: new Date(reply.createdAt),
    endedAt: reply.endedAt === undefined ? undefined : new Date(reply.endedAt),
    expiresAt: new Date(reply.expiresAt),
  };
}
