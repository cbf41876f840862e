import { AidoError } from "@aido/sdk/protocol";
import type { Hono } from "hono";
import { openWithStore } from "../compose.ts";
import type { Config, ServeConfig } from "../config/config.ts";
import { SandboxTokens } from "../core/access/sandbox-tokens.ts";
import type { CoreAido } from "../core/core-aido.ts";
import { DataDir } from "../core/data-dir.ts";
import type { Logger } from "../core/logger.ts";
import { PeriodicTasks } from "../core/periodic/periodic-tasks.ts";
import { parsePool } from "../core/pool/parse-pool.ts";
import type { WarmPool } from "../core/pool/warm-pool.ts";
import { PortTokens } from "../core/ports/port-tokens.ts";
import { serverSecret } from "../core/ports/server-secret.ts";
import { SystemClock } from "../core/system-clock.ts";
import { createApp } from "../http/app.ts";
import { AuditTrail } from "../http/audit-trail.ts";
import { BearerAuthenticator } from "../http/auth/authenticator.ts";
import { JwtVerifier } from "../http/auth/jwt-verifier.ts";
import { KEEP_ANSWERS_MS } from "../http/idempotent.ts";
import { HttpMetrics } from "../http/metrics.ts";
import { PortProxy } from "../http/proxy/port-proxy.ts";
import { sandboxQuota } from "../http/quota.ts";
import { TokenBuckets } from "../http/rate-limiter.ts";
import { type ServerOptions, startServer } from "../http/server.ts";
import { SidecarPorts } from "../http/sidecar/sidecar-ports.ts";
import { upgradeHandler } from "../http/streams/upgrades.ts";
import type { SqliteStore } from "../stores/sqlite/sqlite-store.ts";
import { apiOperations } from "./api-operations.ts";
import { Housekeeping } from "./housekeeping.ts";
import { type OpenSsh, openSsh } from "./open-ssh.ts";
import { startUpkeep, workflowTicks } from "./upkeep.ts";

export interface OpenServer {
  readonly url: string;
  readonly driver: string;
  /** Whether a key or token is asked for. */
  readonly isGuarded: boolean;
  /** `host:port`; undefined when it does not listen for SSH. */
  readonly sshAddress: string | undefined;
  /** Lets running requests end, then lets go of everything; sandboxes run on. */
  close(): Promise<void>;
}

export interface OpenServerOptions {
  config: Config;
  logger: Logger;
  version: string;
  onProgress?: (step: string) => void;
}

const DRAIN_MS = 10_000;
const MOST_OWN_PORTS = 1000;
const LOOPBACK = new Set(["127.0.0.1", "::1", "localhost"]);

export async function openServer(options: OpenServerOptions): Promise<OpenServer> {
  const { config, logger } = options;
  const { aido, store } = await openWithStore(options);
  try {
    const isGuarded = await mustBeGuarded(config.serve, store);
    return await serve(options, aido, store, isGuarded);
  } catch (thrown) {
    logger.debug({ event: "server.start" }, "server did not start");
    await aido.close();
    throw thrown;
  }
}

async function serve(
  { config, logger, version }: OpenServerOptions,
  aido: CoreAido,
  store: SqliteStore,
  isGuarded: boolean,
): Promise<OpenServer> {
  const drain = new AbortController();
  const draining = () => drain.signal.aborted;
  const audit = new AuditTrail(store.audit, logger);
  const authenticator = new BearerAuthenticator({
    keys: store.apiKeys,
    jwt: jwtOf(config.serve),
    required: isGuarded,
    allowedOrigins: config.serve.corsOrigins,
  });
  const poolSpecs = parsePool(config.serve.pool);
  let pool: WarmPool | undefined;
  const metrics = new HttpMetrics(
    async () => ({ ...(await sandboxGauges(store)), ...poolGauges(pool) }),
    () => aido.metrics(),
  );
  const tokens = new PortTokens(await serverSecret(new DataDir(config.dataDir).serverSecret));
  const ports = new PortProxy({
    dial: (sandboxId, port, signal) => aido.ports.dial(sandboxId, port, signal),
    tokens,
    isDraining: draining,
    onReply: (status, durationMs, code) => metrics.request("proxyPort", status, durationMs, code),
  });
  const quota = sandboxQuota(aido, config.serve.maxSandboxes);
  const operations = apiOperations({
    aido,
    version,
    quota,
    idempotency: store.idempotency,
    audit,
    metrics,
    tokens,
    maxBodyBytes: config.serve.maxBodyBytes,
    imageBuilders: config.images.builders,
    awsUsers: config.aws.users,
    pool: () => pool?.state() ?? [],
    failing: () => failing(aido),
    isDraining: draining,
  });
  const app = createApp({
    operations,
    authenticator,
    sandboxTokens: new SandboxTokens(store.sandboxes),
    rateLimiter: new TokenBuckets(config.serve.rateLimit),
    audit,
    metrics,
    logger,
    maxBodyBytes: config.serve.maxBodyBytes,
    corsOrigins: config.serve.corsOrigins,
    draining: drain.signal,
  });
  const upgrade = upgradeHandler({
    aido,
    authenticator,
    isDraining: draining,
    other: (request, socket, head) => ports.upgrade(request, socket, head),
  });
  const intercept: ServerOptions["intercept"] = (request, response) => ports.handle(request, response);
  const tasks = new PeriodicTasks({ leases: store.leases, clock: new SystemClock(), logger });
  const housekeeping = new Housekeeping({
    aido,
    logger,
    tasks,
    forgetAnswers: (now) => store.idempotency.prune(new Date(now.getTime() - KEEP_ANSWERS_MS)),
  });
  const ticks = await workflowTicks(config);
  await housekeeping.start();
  startUpkeep(tasks, aido, config, ticks);
  // Opened without entries too: what a killed server has left in its pool is removed.
  pool = await aido.openPool(poolSpecs, store.pool);
  const { host, port } = config.serve;
  let ssh: OpenSsh | undefined;
  const letGo = async () => {
    await ssh?.close();
    await pool?.close();
    await housekeeping.stop();
    metrics.close();
  };
  const listen = async () => {
    ssh = await openSsh({ aido, config, logger });
    return startServer({ app, host, port, intercept, upgrade, logger, drainMs: DRAIN_MS });
  };
  const server = await listen().catch(async (thrown: unknown) => {
    await letGo();
    throw thrown;
  });
  aido.address.listensOn(Number(new URL(server.url).port || 80));
  const ownPorts = config.sidecar.ownPorts ? await openSidecarPorts(aido, app, config, logger) : undefined;
  return {
    url: server.url,
    driver: aido.driver.name,
    isGuarded,
    sshAddress: ssh?.address,
    close: async () => {
      drain.abort();
      ports.close();
      await Promise.all([server.drain(), ownPorts?.close()]);
      await letGo();
      await audit.flush();
      await aido.close();
    },
  };
}

async function openSidecarPorts(
  aido: CoreAido,
  app: Hono,
  config: Config,
  logger: Logger,
): Promise<SidecarPorts> {
  const ports = new SidecarPorts({
    app,
    firstPort: config.sidecar.httpPort,
    wanted: async () => {
      const records = await aido.store.sandboxes.list({ limit: MOST_OWN_PORTS });
      return records.filter(({ tokenHash }) => tokenHash !== undefined).map(({ id }) => id);
    },
    logger,
    drainMs: DRAIN_MS,
  });
  await ports.start();
  aido.address.useOwnPorts(ports);
  return ports;
}

/** On loopback without any key everybody is the local user; elsewhere a server without a key is refused. */
async function mustBeGuarded(serve: ServeConfig, store: SqliteStore): Promise<boolean> {
  const keys = (await store.apiKeys.list()).filter((key) => key.revokedAt === undefined);
  if (keys.length > 0 || jwtOf(serve) !== undefined) return true;
  if (LOOPBACK.has(serve.host)) return false;
  throw new AidoError(
    "INVALID_CONFIG",
    `A server on ${serve.host} needs keys: anybody could run code on this machine`,
    {
      hint: "Make one with `aido key create`, or listen on 127.0.0.1.",
    },
  );
}

function jwtOf(serve: ServeConfig): JwtVerifier | undefined {
  if (serve.jwtSecret === undefined && serve.jwksUrl === undefined) return undefined;
  return new JwtVerifier({
    secret: serve.jwtSecret?.reveal(),
    jwksUrl: serve.jwksUrl,
    issuer: serve.jwtIssuer,
    audience: serve.jwtAudience,
  });
}

async function failing(aido: CoreAido): Promise<readonly string[]> {
  const names: string[] = [];
  const ask = async (name: string, question: Promise<unknown>): Promise<void> => {
    try {
      await question;
    } catch {
      names.push(name);
    }
  };
  await Promise.all([
    ask(`driver ${aido.driver.name}`, aido.driver.capabilities(AbortSignal.timeout(5_000))),
    ask("store", aido.store.sandboxes.list({ limit: 1 })),
  ]);
  return names;
}

function poolGauges(pool: WarmPool | undefined): Readonly<Record<string, number>> {
  const gauges: Record<string, number> = {};
  const add = (name: string, value: number) => {
    gauges[name] = (gauges[name] ?? 0) + value;
  };
  for (const { image, isolation, ready, target, hits, misses } of pool?.state() ?? []) {
    const label = `image="${image}",isolation="${isolation}"`;
    add(`aido_pool_ready{${label}}`, ready);
    add(`aido_pool_target{${label}}`, target);
    add(`aido_pool_claims_total{${label},result="hit"}`, hits);
    add(`aido_pool_claims_total{${label},result="miss"}`, misses);
  }
  return gauges;
}

async function sandboxGauges(store: SqliteStore): Promise<Readonly<Record<string, number>>> {
  const counts = await store.sandboxes.countByState();
  return Object.fromEntries(
    Object.entries(counts).map(([state, count]) => [`aido_sandboxes{state="${state}"}`, count]),
  );
}
