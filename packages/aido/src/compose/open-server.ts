import type { Hono } from "hono";
import { openWithStore } from "../compose.ts";
import type { Config } from "../config/config.ts";
import { SandboxTokens } from "../core/access/sandbox-tokens.ts";
import type { CoreAido } from "../core/core-aido.ts";
import { DataDir } from "../core/data-dir.ts";
import type { Logger } from "../core/logger.ts";
import { PeriodicTasks } from "../core/periodic/periodic-tasks.ts";
import { parsePool } from "../core/pool/parse-pool.ts";
import type { WarmPool } from "../core/pool/warm-pool.ts";
import { PortTokens } from "../core/ports/port-tokens.ts";
import { serverSecret } from "../core/ports/server-secret.ts";
import { LinuxProcessIdentity } from "../core/process-identity.ts";
import { SystemClock } from "../core/system-clock.ts";
import { AddressLimiter } from "../http/address-limiter.ts";
import { createApp } from "../http/app.ts";
import { AuditTrail } from "../http/audit-trail.ts";
import { BearerAuthenticator } from "../http/auth/authenticator.ts";
import { FailedLogins } from "../http/auth/failed-logins.ts";
import { KEEP_ANSWERS_MS } from "../http/idempotent.ts";
import { PortProxy } from "../http/proxy/port-proxy.ts";
import { TokenBuckets } from "../http/rate-limiter.ts";
import { type ServerOptions, startServer } from "../http/server.ts";
import { SidecarPorts } from "../http/sidecar/sidecar-ports.ts";
import { upgradeHandler } from "../http/streams/upgrades.ts";
import type { SqliteStore } from "../stores/sqlite/sqlite-store.ts";
import { apiOperations } from "./api-operations.ts";
import { auditPort, auditSsh } from "./audit-entrances.ts";
import { chooseEntrance, type Entrance } from "./choose-entrance.ts";
import { Housekeeping } from "./housekeeping.ts";
import { openJwt } from "./open-jwt.ts";
import { openMetrics } from "./open-metrics.ts";
import { checkQos, openQos } from "./open-qos.ts";
import { type OpenSsh, openSsh } from "./open-ssh.ts";
import { Readiness } from "./readiness.ts";
import { startUpkeep, workflowTicks } from "./upkeep.ts";

export interface OpenServer {
  readonly url: string;
  readonly driver: string;
  readonly entrance: Entrance;
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

export async function openServer(options: OpenServerOptions): Promise<OpenServer> {
  const { config, logger } = options;
  checkQos(config);
  const { aido, store } = await openWithStore({ ...options, quotas: true });
  try {
    const entrance = await chooseEntrance(config.serve, store.apiKeys);
    return await serve(options, aido, store, entrance);
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
  entrance: Entrance,
): Promise<OpenServer> {
  const drain = new AbortController();
  const draining = () => drain.signal.aborted;
  const audit = new AuditTrail(store.audit, logger);
  const authenticator = new BearerAuthenticator({
    keys: store.apiKeys,
    jwt: openJwt(config.serve),
    required: entrance !== "open",
    open: config.serve.open,
    allowedOrigins: config.serve.corsOrigins,
  });
  const failedLogins = new FailedLogins();
  const poolSpecs = parsePool(config.serve.pool);
  let pool: WarmPool | undefined;
  const metrics = openMetrics(aido, store, () => pool);
  const tokens = new PortTokens(await serverSecret(new DataDir(config.dataDir).serverSecret));
  const ports = new PortProxy({
    dial: (sandboxId, port, signal) => aido.ports.dial(sandboxId, port, signal),
    tokens,
    isDraining: draining,
    onReply: (reply) => {
      metrics.request("proxyPort", reply.status, reply.durationMs, reply.code);
      auditPort(audit, reply);
    },
  });
  const readiness = new Readiness({ driver: aido.driver, store, dataDir: config.dataDir });
  const operations = apiOperations({
    aido,
    version,
    idempotency: { store: store.idempotency, processes: new LinuxProcessIdentity("http") },
    audit,
    metrics,
    tokens,
    maxBodyBytes: config.serve.maxBodyBytes,
    timeoutMs: config.serve.timeoutMs,
    imageBuilders: config.images.builders,
    awsUsers: config.aws.users,
    pool: () => pool?.state() ?? [],
    failing: () => readiness.failing(),
    isDraining: draining,
  });
  const admission = { authenticator, failedLogins, rateLimiter: new TokenBuckets(config.serve.rateLimit) };
  const reports = { audit, metrics, logger };
  const app = createApp({
    operations,
    ...admission,
    ...reports,
    sandboxTokens: new SandboxTokens(store.sandboxes),
    addressLimiter: new AddressLimiter(),
    maxBodyBytes: config.serve.maxBodyBytes,
    bodyIdleMs: config.serve.bodyIdleMs,
    corsOrigins: config.serve.corsOrigins,
    draining: drain.signal,
  });
  const upgrade = upgradeHandler({
    aido,
    ...admission,
    ...reports,
    isDraining: draining,
    other: (request, socket, head) => ports.upgrade(request, socket, head),
  });
  const intercept: ServerOptions["intercept"] = (request, response) => ports.handle(request, response);
  const clock = new SystemClock();
  const tasks = new PeriodicTasks({ leases: store.leases, clock, logger });
  const housekeeping = new Housekeeping({
    aido,
    logger,
    tasks,
    forgetAnswers: (now) => store.idempotency.prune(new Date(now.getTime() - KEEP_ANSWERS_MS)),
  });
  const ticks = await workflowTicks(config);
  await housekeeping.start();
  const qos = openQos(config, { metrics: () => aido.metrics(), logger, clock });
  startUpkeep(tasks, aido, config, { ticks, qos });
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
    ssh = await openSsh({ aido, config, logger, onUse: (use) => auditSsh(audit, use) });
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
    entrance,
    sshAddress: ssh?.address,
    close: async () => {
      drain.abort();
      ports.close();
      await Promise.all([server.drain(), ownPorts?.close()]);
      await letGo();
      await audit.close();
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
