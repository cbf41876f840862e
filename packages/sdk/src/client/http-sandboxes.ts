import type { Sandboxes, SandboxFilter } from "../aido.ts";
import type { CreateSandbox, SandboxInfo, SandboxStats } from "../protocol/index.ts";
import type { SandboxReply } from "../schemas/index.ts";
import { toSandboxInfo } from "./from-wire.ts";
import type { Transport } from "./transport.ts";

const PATH = "/api/sandbox";
const one = (sandbox: string, verb = ""): string => `${PATH}/${encodeURIComponent(sandbox)}${verb}`;

export class HttpSandboxes implements Sandboxes {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async create(request: CreateSandbox, options: { signal?: AbortSignal } = {}): Promise<SandboxInfo> {
    const { id: _, privileged: __, ...body } = request;
    // The same key twice makes one sandbox, so that a broken connection can be tried again.
    const headers = { "idempotency-key": crypto.randomUUID() };
    const reply = await this.#transport.json<SandboxReply>(PATH, {
      method: "POST",
      json: body,
      headers,
      repeatable: true,
      signal: options.signal,
    });
    return toSandboxInfo(reply);
  }

  async get(sandbox: string): Promise<SandboxInfo> {
    return toSandboxInfo(await this.#transport.json<SandboxReply>(one(sandbox), { repeatable: true }));
  }

  async list(filter: SandboxFilter = {}): Promise<readonly SandboxInfo[]> {
    const query = new URLSearchParams();
    if (filter.states !== undefined) query.set("state", filter.states.join(","));
    if (filter.limit !== undefined) query.set("limit", String(filter.limit));
    if (filter.before !== undefined) query.set("before", filter.before);
    for (const [name, value] of Object.entries(filter.labels ?? {}))
      query.append("label", `${name}=${value}`);
    const text = query.toString();
    const path = text === "" ? PATH : `${PATH}?${text}`;
    const page = await this.#transport.json<{ sandboxes: SandboxReply[] }>(path, { repeatable: true });
    return page.sandboxes.map(toSandboxInfo);
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

  async destroy(sandbox: string, signal?: AbortSignal): Promise<void> {
    await this.#transport.json(one(sandbox), { method: "DELETE", signal });
  }

  async setTtl(sandbox: string, ttlMs: number): Promise<SandboxInfo> {
    return this.#post(one(sandbox, "/timeout"), { timeout: ttlMs });
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

  async #post(path: string, json: object, signal?: AbortSignal): Promise<SandboxInfo> {
    return toSandboxInfo(await this.#transport.json<SandboxReply>(path, { method: "POST", json, signal }));
  }
}
