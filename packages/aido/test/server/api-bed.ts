import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Agents, HttpAido } from "@aido/sdk";
import type { Hono } from "hono";
import { apiOperations } from "../../src/compose/api-operations.ts";
import { openMetrics } from "../../src/compose/open-metrics.ts";
import { ownerLimits } from "../../src/compose/owner-limits.ts";
import { wire } from "../../src/compose/wire.ts";
import type { ImageBuilders } from "../../src/config/image-settings.ts";
import { loadConfig } from "../../src/config/load-config.ts";
import type { KeyLimits, Scope } from "../../src/core/access/api-keys.ts";
import { newApiKey } from "../../src/core/access/new-api-key.ts";
import { SandboxTokens } from "../../src/core/access/sandbox-tokens.ts";
import type { CoreAido } from "../../src/core/core-aido.ts";
import { DataDir } from "../../src/core/data-dir.ts";
import { PortTokens } from "../../src/core/ports/port-tokens.ts";
import { LinuxProcessIdentity } from "../../src/core/process-identity.ts";
import { FakeDriver, type FakeDriverOptions } from "../../src/drivers/fake/fake-driver.ts";
import { AddressLimiter } from "../../src/http/address-limiter.ts";
import { createApp } from "../../src/http/app.ts";
import { AuditTrail } from "../../src/http/audit-trail.ts";
import { BearerAuthenticator } from "../../src/http/auth/authenticator.ts";
import { FailedLogins } from "../../src/http/auth/failed-logins.ts";
import type { JwtVerifier } from "../../src/http/auth/jwt-verifier.ts";
import type { Operation } from "../../src/http/operation.ts";
import { TokenBuckets } from "../../src/http/rate-limiter.ts";
import { StreamLogger } from "../../src/log/stream-logger.ts";
import { SqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";

const MAX_BODY_BYTES = 1024 * 1024;

export interface ApiBedOptions extends FakeDriverOptions {
  guarded?: boolean;
  open?: boolean;
  jwt?: JwtVerifier;
  rateLimit?: number;
  failedLogins?: number;
  addressLimit?: number;
  maxSandboxes?: number;
  maxBodyBytes?: number;
  /** As a configuration file has them. */
  settings?: Readonly<Record<string, unknown>>;
  corsOrigins?: readonly string[];
  agents?: Agents;
  imageBuilders?: ImageBuilders;
  /** Settings as variables. */
  env?: Readonly<Record<string, string>>;
}

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a reply's body is whatever the test expects it to be
  readonly json: any;
}

export interface Ask {
  key?: string | undefined;
  body?: unknown;
  raw?: NonNullable<RequestInit["body"]>;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** The whole API on the fake driver and a real database, called without a network. */
export class ApiBed implements AsyncDisposable {
  readonly app: Hono;
  readonly aido: CoreAido;
  readonly driver: FakeDriver;
  readonly store: SqliteStore;
  readonly operations: readonly Operation[];
  readonly logged: string[];
  readonly draining: AbortController;
  readonly root: string;
  readonly #release: () => Promise<void>;

  private constructor(parts: {
    app: Hono;
    aido: CoreAido;
    driver: FakeDriver;
    store: SqliteStore;
    operations: readonly Operation[];
    logged: string[];
    draining: AbortController;
    root: string;
    release: () => Promise<void>;
  }) {
    this.app = parts.app;
    this.aido = parts.aido;
    this.driver = parts.driver;
    this.store = parts.store;
    this.operations = parts.operations;
    this.logged = parts.logged;
    this.draining = parts.draining;
    this.root = parts.root;
    this.#release = parts.release;
  }

  static async open(options: ApiBedOptions = {}): Promise<ApiBed> {
    const root = mkdtempSync(join(tmpdir(), "aido-api-"));
    const logged: string[] = [];
    const logger = new StreamLogger({
      level: "debug",
      format: "json",
      write: (line) => logged.push(line),
      now: () => new Date(),
    });
    const { config } = loadConfig({
      env: { XDG_CONFIG_HOME: "/nowhere", ...options.env },
      cwd: root,
      flags: {
        dataDir: join(root, "data"),
        "serve.maxSandboxes": options.maxSandboxes,
        ...options.settings,
      },
    });
    const dataDir = new DataDir(config.dataDir);
    const driver = new FakeDriver(options);
    const store = new SqliteStore(dataDir.database);
    const limitsOf = ownerLimits(config.serve, store.apiKeys);
    const aido = await wire({ config, logger, actor: "server", limitsOf }, { driver, store, dataDir });
    const audit = new AuditTrail(store.audit, logger);
    const metrics = openMetrics(aido, store, () => undefined);
    const draining = new AbortController();
    const operations = apiOperations({
      aido,
      version: "1.2.3",
      idempotency: { store: store.idempotency, processes: new LinuxProcessIdentity("http") },
      audit,
      metrics,
      tokens: new PortTokens(Buffer.alloc(32, 7)),
      maxBodyBytes: options.maxBodyBytes ?? MAX_BODY_BYTES,
      timeoutMs: config.serve.timeoutMs,
      ...(options.agents && { agents: options.agents }),
      imageBuilders: options.imageBuilders ?? config.images.builders,
      pool: () => [],
      failing: async () => [],
      isDraining: () => draining.signal.aborted,
    });
    const corsOrigins = options.corsOrigins ?? [];
    const app = createApp({
      operations,
      authenticator: new BearerAuthenticator({
        keys: store.apiKeys,
        jwt: options.jwt,
        required: options.guarded ?? false,
        open: options.open ?? false,
        allowedOrigins: corsOrigins,
      }),
      sandboxTokens: new SandboxTokens(store.sandboxes),
      rateLimiter: new TokenBuckets(options.rateLimit ?? 0),
      failedLogins: new FailedLogins(options.failedLogins ?? 0),
      addressLimiter: new AddressLimiter(options.addressLimit),
      audit,
      metrics,
      logger,
      maxBodyBytes: options.maxBodyBytes ?? MAX_BODY_BYTES,
      bodyIdleMs: config.serve.bodyIdleMs,
      corsOrigins,
      draining: draining.signal,
    });
    const release = async () => {
      await audit.close();
      metrics.close();
      await aido.close();
      rmSync(root, { recursive: true, force: true });
    };
    return new ApiBed({ app, aido, driver, store, operations, logged, draining, root, release });
  }

  /** Names a process that has ended on this machine. */
  deadHolder(): string {
    const [boot, namespace] = new LinuxProcessIdentity("x").self.split(".");
    return `${boot}.${namespace}.4194305.1.dead`;
  }

  /** A key as `aido key create` makes it. */
  async key(
    name: string,
    options: { scopes?: readonly Scope[]; expiresAt?: Date; limits?: KeyLimits } = {},
  ): Promise<string> {
    const { key, record } = newApiKey({
      name,
      scopes: options.scopes ?? ["read", "write"],
      now: new Date(),
      expiresAt: options.expiresAt,
      ...(options.limits && { limits: options.limits }),
    });
    await this.store.apiKeys.insert(record);
    return key;
  }

  /** The SDK's client, without a network in between. */
  client(key?: string): HttpAido {
    return new HttpAido({
      url: "http://localhost",
      apiKey: key,
      fetch: async (url, init) => await this.app.request(String(url), init),
    });
  }

  async fetch(method: string, path: string, ask: Ask = {}): Promise<Response> {
    const headers = new Headers(ask.headers);
    if (ask.key !== undefined) headers.set("authorization", `Bearer ${ask.key}`);
    if (ask.body !== undefined) headers.set("content-type", "application/json");
    const body = ask.raw ?? (ask.body === undefined ? undefined : JSON.stringify(ask.body));
    return await this.app.request(`http://localhost${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body, duplex: "half" }),
      ...(ask.signal === undefined ? {} : { signal: ask.signal }),
    } as RequestInit);
  }

  async call(method: string, path: string, ask: Ask = {}): Promise<Reply> {
    const response = await this.fetch(method, path, ask);
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: isJson && text !== "" ? JSON.parse(text) : undefined,
    };
  }

  get(path: string, ask?: Ask): Promise<Reply> {
    return this.call("GET", path, ask);
  }

  post(path: string, body: unknown, ask: Ask = {}): Promise<Reply> {
    return this.call("POST", path, { ...ask, body });
  }

  /** A sandbox of the caller's; returns its id. */
  async sandbox(key?: string, body: object = {}): Promise<string> {
    const reply = await this.post("/api/sandbox", body, { key });
    if (reply.status !== 201) throw new Error(`no sandbox: ${reply.status} ${reply.text}`);
    return reply.json.containerId;
  }

  exec(containerId: string, command: readonly string[], more: object = {}, key?: string): Promise<Reply> {
    return this.post("/api/sandbox/exec", { containerId, command, ...more }, { key });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#release();
  }
}
