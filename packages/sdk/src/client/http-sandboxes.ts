import type { Progress, Sandboxes, SandboxFilter } from "../aido.ts";
import {
  AidoError,
  type CreatedSandbox,
  type CreateSandbox,
  isAidoError,
  type SandboxInfo,
  type SandboxStats,
  type SidecarAccess,
} from "../protocol/index.ts";
import type { SandboxReply, TokenReply } from "../schemas/index.ts";
import { toSandboxInfo } from "./from-wire.ts";
import { randomHex } from "./random-hex.ts";
import type { Transport } from "./transport.ts";

const PATH = "/api/sandbox";
const MAX_PAGE = 1000;
const TOKEN_BYTES = 32;
const one = (sandbox: string, verb = ""): string => `${PATH}/${encodeURIComponent(sandbox)}${verb}`;

export class HttpSandboxes implements Sandboxes {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async create(
    request: CreateSandbox,
    options: { signal?: AbortSignal; onProgress?: Progress } = {},
  ): Promise<CreatedSandbox> {
    const { id, ...body } = request;
    if (id !== undefined) throw new AidoError("UNSUPPORTED", "A server chooses the ids of its sandboxes");
    options.onProgress?.(`Waiting for ${this.#transport.url}`);
    // The same key twice makes one sandbox, so that a broken connection can be tried again.
    const headers = { "idempotency-key": randomHex(16) };
    // A token that the server makes is in its first answer only, which a broken connection loses: this one is known here.
    const token = body.token ?? (body.profile === "sidecar" ? randomHex(TOKEN_BYTES) : undefined);
    const reply = await this.#transport.json<SandboxReply>(PATH, {
      method: "POST",
      json: { ...body, token },
      headers,
      repeatable: true,
      slow: true,
      signal: options.signal,
    });
    return { ...toSandboxInfo(reply), token };
  }

  async get(sandbox: string): Promise<SandboxInfo> {
    return toSandboxInfo(await this.#transport.json<SandboxReply>(one(sandbox), { repeatable: true }));
  }

  async list(filter: SandboxFilter = {}): Promise<readonly SandboxInfo[]> {
    const found: SandboxInfo[] = [];
    if (filter.states?.length === 0 || filter.limit === 0) return found;
    let before = filter.before;
    for (;;) {
      const left = (filter.limit ?? Number.POSITIVE_INFINITY) - found.length;
      const page = await this.#page({ ...filter, before, limit: Math.min(left, MAX_PAGE) });
      found.push(...page.sandboxes.map(toSandboxInfo));
      if (page.next === null || found.length >= (filter.limit ?? Number.POSITIVE_INFINITY)) return found;
      before = page.next;
    }
  }

  async start(sandbox: string, signal?: AbortSignal): Promise<SandboxInfo> {
    return this.#post(one(sandbox, "/start"), {}, signal);
  }

  async stop(
    sandbox: string,
    options: { graceMs?: number; signal?: AbortSignal } = {},
  ): Promise<SandboxInfo> {
    const body = options.graceMs === undefined ? {} : { graceMs: options.graceMs };
    return this.#post(one(sandbox, "/stop"), body, options.signal);
  }

  /** The server says that a destroyed sandbox is not there, which here is what was wanted. */
  async destroy(sandbox: string, signal?: AbortSignal): Promise<void> {
    try {
      await this.#transport.json(one(sandbox), { method: "DELETE", repeatable: true, slow: true, signal });
    } catch (thrown) {
      if (!isAidoError(thrown, "CONTAINER_NOT_FOUND") && !isAidoError(thrown, "CONTAINER_EXPIRED"))
        throw thrown;
      const destroyed = await this.list({ states: ["deleted"] });
      if (!destroyed.some(({ id }) => id === sandbox)) throw thrown;
    }
  }

  async setTtl(sandbox: string, ttlMs: number): Promise<SandboxInfo> {
    return this.#post(one(sandbox, "/timeout"), { timeout: ttlMs });
  }

  async issueToken(sandbox: string, chosen?: string): Promise<SidecarAccess> {
    // Chosen here, so that asking again after a broken connection gives the same.
    const json = { token: chosen ?? randomHex(TOKEN_BYTES) };
    const call = { method: "POST" as const, json, repeatable: true };
    const reply = await this.#transport.json<TokenReply>(one(sandbox, "/token"), call);
    return { sandboxId: reply.containerId, sidecarUrl: reply.sidecarUrl, token: json.token };
  }

  async stats(sandbox: string): Promise<SandboxStats> {
    const reply = await this.#transport.json<Omit<SandboxStats, "at"> & { at: string }>(
      one(sandbox, "/stats"),
      {
        repeatable: true,
      },
    );
    return { ...reply, at: new Date(reply.at) };
  }

  #page(filter: SandboxFilter): Promise<{ sandboxes: SandboxReply[]; next: string | null }> {
    const query = new URLSearchParams();
    if (filter.states !== undefined) query.set("state", filter.states.join(","));
    if (filter.limit !== undefined) query.set("limit", String(filter.limit));
    if (filter.before !== undefined) query.set("before", filter.before);
    for (const [name, value] of Object.entries(filter.labels ?? {}))
      query.append("label", `${name}=${value}`);
    return this.#transport.json(`${PATH}?${query.toString()}`, { repeatable: true });
  }

  async #post(path: string, json: object, signal?: AbortSignal): Promise<SandboxInfo> {
    const call = { method: "POST" as const, json, slow: true, signal };
    return toSandboxInfo(await this.#transport.json<SandboxReply>(path, call));
  }
}
