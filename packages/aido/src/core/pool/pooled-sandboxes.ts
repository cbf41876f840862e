import { mkdir } from "node:fs/promises";
import type { CreateSandbox } from "@aido/sdk/protocol";
import { AidoError, toAidoError } from "@aido/sdk/protocol";
import type { EvidenceSink } from "../evidence/evidence-sink.ts";
import type { Presence } from "../process-presence.ts";
import { ContainerLauncher } from "../sandbox/container-launcher.ts";
import { removeTree } from "../sandbox/remove-tree.ts";
import type { SandboxDeps } from "../sandbox/sandbox-deps.ts";
import type { SandboxRecord } from "../store/store.ts";
import { withTimeLimit } from "../supervisor/time-limit.ts";
import type { PooledSandbox, PoolStore } from "./pool-store.ts";
import type { Ready } from "./shelf.ts";

export interface PooledSandboxesDeps extends SandboxDeps {
  readonly pool: PoolStore;
  readonly presence: Presence;
  /** A checked request as a record in state `pending`. */
  readonly build: (request: CreateSandbox) => Promise<SandboxRecord>;
  /** The first look at a sandbox; done in advance, because it takes time. */
  readonly begin: (record: SandboxRecord) => Promise<void>;
}

/** The supervisor ends its sandbox when nobody has renewed this: a killed server's pool ends by itself. */
const LEASE_MS = 10 * 60_000;
/** A supervisor answers in a millisecond; one that takes this long is of no use to whoever waits. */
const ANSWER_MS = 1_000;
export const POOL_LABEL = "dev.aido.pool";

/** What can be done with one pooled sandbox. Its history as a sandbox, evidence included, begins when it is claimed. */
export class PooledSandboxes {
  readonly #deps: PooledSandboxesDeps;
  readonly #launcher: ContainerLauncher;
  readonly #leftBehind = new Set<string>();

  constructor(deps: PooledSandboxesDeps) {
    this.#deps = deps;
    const nobody: EvidenceSink = { append: async () => undefined, appendSoon: () => undefined };
    this.#launcher = new ContainerLauncher({
      ...deps,
      evidence: { ...nobody, archive: async () => undefined },
    });
  }

  async make(request: CreateSandbox, key: string, signal: AbortSignal): Promise<Ready> {
    const { pool, presence, dataDir } = this.#deps;
    const built = await this.#deps.build(request);
    const record = { ...built, ttlMs: LEASE_MS, labels: { [POOL_LABEL]: "ready" } };
    await presence.appear();
    await pool.insert({ record, key, holder: presence.self, isReady: false });
    try {
      await mkdir(dataDir.sandbox(record.id), { recursive: true, mode: 0o700 });
      const started = await this.#launcher.bringUp(record, signal);
      const running = { ...record, ...started, state: "running" as const };
      const user = await this.#user(record.id);
      await this.#deps.begin(running);
      signal.throwIfAborted();
      if (!(await pool.setReady(record.id, presence.self, running))) throw notOurs(record.id);
      return { record: running, user, seenAt: this.#now() };
    } catch (thrown) {
      await this.discard(record.id);
      throw thrown;
    }
  }

  /** Undefined when it is of no use any more; it is removed then. */
  async renew(ready: Ready): Promise<Ready | undefined> {
    try {
      await this.#configure(ready.record, ready.user, LEASE_MS);
      ready.seenAt = this.#now();
      return ready;
    } catch {
      await this.discard(ready.record.id);
      return undefined;
    }
  }

  /** Of a process that has died. */
  async adopt(pooled: PooledSandbox, isWanted: boolean): Promise<Ready | undefined> {
    const { pool, presence, driver } = this.#deps;
    const { record } = pooled;
    await presence.appear();
    if (!(await pool.takeOver(record.id, pooled.holder, presence.self))) return undefined;
    const container = isWanted && pooled.isReady ? await driver.inspect(record.id) : undefined;
    if (container?.state !== "running") {
      await this.discard(record.id);
      return undefined;
    }
    return await this.renew({ record, user: container.user, seenAt: this.#now() });
  }

  /**
   * Gives it away: undefined when it does not answer or is no longer ours. The deadline is set first, so a sandbox
   * that somebody has is never left with the pool's.
   */
  async claim(ready: Ready, wanted: SandboxRecord): Promise<SandboxRecord | undefined> {
    const { clock, pool, presence, evidence } = this.#deps;
    const { id, containerId, imageEnv, supervisorToken } = ready.record;
    const startedAt = clock.now();
    const expiresAt = wanted.ttlMs === 0 ? undefined : new Date(startedAt.getTime() + wanted.ttlMs);
    const own = {
      id,
      containerId,
      imageEnv,
      supervisorToken,
      startedAt,
      expiresAt,
      lastActivityAt: startedAt,
    };
    const record: SandboxRecord = { ...wanted, ...own, state: "running" };
    try {
      await this.#configure(record, ready.user, wanted.ttlMs);
    } catch {
      await this.discard(id);
      return undefined;
    }
    if (!(await pool.claim(id, presence.self, record))) return undefined;
    const { name, profile, image, driver, isolation, network, limits, ttlMs, privileged } = record;
    const detail = {
      name,
      profile,
      image,
      driver,
      isolation,
      network,
      limits,
      ttlMs,
      privileged,
      pooled: true,
    };
    await evidence.append(id, "sandbox.created", detail);
    await evidence.append(id, "sandbox.started", { containerId });
    return record;
  }

  /** Tries again to remove what could not be removed. */
  async discardLeft(): Promise<void> {
    for (const id of [...this.#leftBehind]) await this.discard(id);
  }

  /** All that was made for it; what cannot be removed now stays on record for the next look. */
  async discard(id: string): Promise<void> {
    const { driver, supervisors, dataDir, pool, presence, logger } = this.#deps;
    try {
      await driver.remove(id);
      supervisors.drop(id);
      await removeTree(dataDir.sandbox(id));
      await pool.remove(id, presence.self);
      this.#leftBehind.delete(id);
    } catch (thrown) {
      this.#leftBehind.add(id);
      const { code, message } = toAidoError(thrown);
      logger.warn({ event: "pool.discard", sandboxId: id, code, message }, "A pooled sandbox is left behind");
    }
  }

  async #configure(record: SandboxRecord, user: Ready["user"], deadlineMs: number): Promise<void> {
    const limit = { clock: this.#deps.clock, limitMs: ANSWER_MS, what: `Sandbox ${record.id}` };
    await withTimeLimit(limit, (signal) => this.#launcher.configure(record, user, deadlineMs, signal));
  }

  async #user(id: string): Promise<Ready["user"]> {
    const container = await this.#deps.driver.inspect(id);
    if (container === undefined) throw notOurs(id);
    return container.user;
  }

  #now(): number {
    return this.#deps.clock.now().getTime();
  }
}

function notOurs(id: string): AidoError {
  return new AidoError("CONTAINER_LOST", `The pooled sandbox ${id} was removed while it was being made`);
}
