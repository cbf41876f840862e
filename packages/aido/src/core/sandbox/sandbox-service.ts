import type { Progress, Sandboxes, SandboxFilter } from "@aido/sdk";
import {
  AidoError,
  type CreatedSandbox,
  type CreateSandbox,
  type EndReason,
  isAidoError,
  type SandboxInfo,
  type SandboxStats,
  type SidecarAccess,
} from "@aido/sdk/protocol";
import { SandboxTokens } from "../access/sandbox-tokens.ts";
import type { DriverCapabilities } from "../driver/driver.ts";
import type { SandboxRecord } from "../store/store.ts";
import { withTimeLimit } from "../supervisor/time-limit.ts";
import { ColdStorage } from "../tier/cold-storage.ts";
import { TierKeeper } from "../tier/tier-keeper.ts";
import { withToken } from "./build-record.ts";
import { checkToken, checkTtl } from "./check-request.ts";
import { ContainerLauncher } from "./container-launcher.ts";
import { DiskWatchdog } from "./disk-watchdog.ts";
import { lifetimesOf } from "./lifetimes.ts";
import { Reconciler } from "./reconciler.ts";
import { refuseForeign } from "./refuse-foreign.ts";
import { SandboxClaims } from "./sandbox-claims.ts";
import { SandboxEnder } from "./sandbox-ender.ts";
import { SandboxFinder } from "./sandbox-finder.ts";
import type { LaunchOptions, PrepareOptions, SandboxLifecycle, StopOptions } from "./sandbox-lifecycle.ts";
import type { SandboxResolver } from "./sandbox-resolver.ts";
import { SandboxStarter, type StarterOptions } from "./sandbox-starter.ts";
import { SandboxWaker, type WakeOptions } from "./sandbox-waker.ts";
import { StartupReconciler } from "./startup-reconciler.ts";
import { toSandboxInfo } from "./to-sandbox-info.ts";

const STOP_GRACE_MS = 10_000;
const DESTROY_WAIT_MS = 60_000;
const SETTLE_LIMIT_MS = 10_000;
const POLL_MS = 50;
/** Ends are told by the driver; this only bounds how long a missed one stays unseen. */
const END_POLL_MS = 1000;

/** Sandboxes from their first record to their last evidence. */
export class SandboxService implements Sandboxes, SandboxResolver, SandboxLifecycle {
  readonly #deps: StarterOptions;
  readonly #claims: SandboxClaims;
  readonly #ender: SandboxEnder;
  readonly #finder: SandboxFinder;
  readonly #launcher: ContainerLauncher;
  readonly #reconciler: Reconciler;
  readonly #starter: SandboxStarter;
  readonly #waker: SandboxWaker;
  readonly #tiers: TierKeeper;
  readonly #watchdog: DiskWatchdog;
  readonly #closing = new AbortController();
  #capabilities: Promise<DriverCapabilities> | undefined;

  constructor(options: StarterOptions) {
    this.#deps = options;
    this.#capabilities = options.capabilities && this.#untilFailure(options.capabilities);
    this.#claims = new SandboxClaims(options);
    this.#ender = new SandboxEnder(options);
    this.#finder = new SandboxFinder(options.store.sandboxes, options.clock);
    this.#launcher = new ContainerLauncher(options);
    this.#reconciler = new Reconciler(options, this.#ender, this.#claims);
    this.#tiers = new TierKeeper(options);
    this.#starter = new SandboxStarter(options, {
      claims: this.#claims,
      ender: this.#ender,
      launcher: this.#launcher,
      tiers: this.#tiers,
      cold: new ColdStorage(options, this.#launcher),
      capabilities: () => this.#able(),
      closing: this.#closing.signal,
    });
    this.#waker = new SandboxWaker({
      sandboxes: options.store.sandboxes,
      clock: options.clock,
      start: (id, options) => this.#starter.start(id, options),
    });
    this.#watchdog = new DiskWatchdog(options, this.#ender, () => this.#able());
  }

  async create(
    request: CreateSandbox,
    options: { signal?: AbortSignal; onProgress?: Progress } = {},
  ): Promise<CreatedSandbox> {
    const pool = this.#deps.pool?.();
    const wanted = withToken(request, this.#deps.profile);
    const create = () => this.#starter.create(wanted, options);
    const record = (await pool?.claim(wanted, options.signal)) ?? (await (pool?.beside(create) ?? create()));
    if (record.tokenHash !== undefined) await this.#deps.address?.prepare(record.id);
    return { ...this.#info(this.#watched(record)), token: wanted.token };
  }

  /** A checked request as a record that nobody has been told of. */
  build(request: CreateSandbox): Promise<SandboxRecord> {
    return this.#starter.build(request);
  }

  async prepare(request: CreateSandbox, options: PrepareOptions = {}): Promise<SandboxRecord> {
    return await this.#starter.prepare(request, options);
  }

  async fetchImage(
    sandboxId: string,
    options: { signal?: AbortSignal | undefined; onProgress?: Progress | undefined } = {},
  ): Promise<void> {
    const record = await this.#own(sandboxId);
    await this.#deps.driver.ensureImage(record.image, {
      ...(options.signal && { signal: options.signal }),
      ...(options.onProgress && { onProgress: options.onProgress }),
    });
  }

  async launch(sandboxId: string, options: LaunchOptions = {}): Promise<SandboxRecord> {
    const { id } = await this.#own(sandboxId);
    return this.#watched(await this.#starter.launch(id, options));
  }

  async finish(
    sandboxId: string,
    reason: EndReason,
    options: { graceMs?: number } = {},
  ): Promise<SandboxRecord> {
    const { driver, store } = this.#deps;
    this.#letGo(sandboxId);
    await this.#claims.holdPatiently(sandboxId, "stop", async () => {
      const record = await this.#own(sandboxId);
      if (record.state === "deleted") return;
      if (options.graceMs !== undefined) await driver.stop(record.id, options.graceMs);
      await this.#ender.retire(record, reason);
    });
    return (await store.sandboxes.get(sandboxId)) ?? (await this.resolve(sandboxId));
  }

  async untilEnded(sandboxId: string, signal: AbortSignal): Promise<SandboxRecord> {
    const { driver, clock } = this.#deps;
    const done = new AbortController();
    const ended = new Set<() => void>();
    const watching = driver.watch((id) => {
      if (id === sandboxId) for (const wake of ended) wake();
    }, done.signal);
    watching.catch(() => undefined);
    try {
      for (;;) {
        const record = await this.#reconciler.reconcileOne(await this.#own(sandboxId));
        if (record.state !== "running") return record;
        this.#deps.aws?.keep(record);
        const nap = new AbortController();
        const wake = () => nap.abort();
        ended.add(wake);
        await clock.sleep(END_POLL_MS, AbortSignal.any([signal, nap.signal])).catch(() => undefined);
        ended.delete(wake);
        signal.throwIfAborted();
      }
    } finally {
      done.abort();
    }
  }

  async get(sandbox: string): Promise<SandboxInfo> {
    return this.#info(await this.#fresh(sandbox));
  }

  async list(filter: SandboxFilter = {}): Promise<readonly SandboxInfo[]> {
    const { sandboxes } = this.#deps.store;
    await this.#reconciler.reconcile();
    // A page may begin after a sandbox that was destroyed since the page before.
    const cursor = filter.before;
    const before =
      cursor === undefined ? undefined : ((await sandboxes.get(cursor)) ?? (await this.resolve(cursor))).id;
    return (await sandboxes.list({ ...filter, before })).map((record) => this.#info(record));
  }

  async start(sandbox: string, signal?: AbortSignal): Promise<SandboxInfo> {
    const record = await this.#fresh(sandbox);
    refuseForeign(record, this.#deps.driver.name);
    return this.#info(this.#watched(await this.#waker.start(record.id, { signal })));
  }

  async stop(sandbox: string, options: StopOptions = {}): Promise<SandboxInfo> {
    const { id, state } = await this.#fresh(sandbox);
    if (state === "running") {
      await this.#settle(id, options.signal);
      this.#letGo(id);
      await this.#claims.hold(id, "stop", async () => {
        if (options.onlyIf !== undefined && !(await options.onlyIf(await this.#own(id)))) return;
        await this.#deps.driver.stop(id, options.graceMs ?? STOP_GRACE_MS, options.signal);
        const container = await this.#deps.driver.inspect(id);
        const record = await this.#own(id);
        const reason = await this.#ender.reasonFor(record, container);
        const isOurs = reason === "lost" || reason === "stopped";
        if (isOurs)
          await this.#ender.markEnded(id, options.reason ?? "stopped", options.detail, options.counts);
        else await this.#ender.markEnded(id, reason);
        await this.#tiers.commitOnStop(id);
      });
    }
    return this.#info(await this.#own(id));
  }

  /** What a sandbox holds up must not keep it from being stopped. */
  async #settle(id: string, signal: AbortSignal | undefined): Promise<void> {
    const work = this.#deps.settled?.(id);
    if (work === undefined) return;
    const limit = {
      clock: this.#deps.clock,
      limitMs: SETTLE_LIMIT_MS,
      what: "Reading its workspace",
      signal,
    };
    await withTimeLimit(limit, () => work).catch(() => undefined);
    signal?.throwIfAborted();
  }

  async destroy(sandbox: string, signal?: AbortSignal): Promise<void> {
    const { store, clock } = this.#deps;
    const record = await this.#findForDestroy(sandbox);
    this.#letGo(record.id);
    const deadline = clock.now().getTime() + DESTROY_WAIT_MS;
    while (!(await this.#claims.seize(record.id, () => this.#destroyNow(record.id)))) {
      // Another process destroys it: what counts is that it is gone when this returns.
      await clock.sleep(POLL_MS, signal);
      if (clock.now().getTime() > deadline) {
        throw new AidoError(
          "CONTAINER_BUSY",
          `Sandbox ${record.id} is still being destroyed by another process`,
        );
      }
      if ((await store.claims.get(record.id)) === undefined) {
        const now = await store.sandboxes.get(record.id);
        if (now === undefined || now.state === "deleted") return;
      }
    }
  }

  async setTtl(sandbox: string, wantedMs: number): Promise<SandboxInfo> {
    checkTtl(wantedMs);
    const { store, clock, driver, evidence, overrides = {} } = this.#deps;
    const record = await this.#fresh(sandbox);
    const { ttlMs } = lifetimesOf(record.profile, { ttlMs: wantedMs }, overrides);
    const expiresAt =
      ttlMs === 0 || record.state === "pending" ? undefined : new Date(clock.now().getTime() + ttlMs);
    if (record.state === "running") {
      const container = await driver.inspect(record.id);
      if (container !== undefined) await this.#launcher.configure(record, container.user, ttlMs);
    }
    await store.sandboxes.update(record.id, { ttlMs, expiresAt });
    this.#deps.aws?.changed(record.id);
    await evidence.append(record.id, "sandbox.ttl", { ttlMs });
    return this.#info({ ...record, ttlMs, expiresAt });
  }

  async issueToken(sandbox: string, chosen?: string): Promise<SidecarAccess> {
    if (chosen !== undefined) checkToken(chosen);
    const { store, evidence, address } = this.#deps;
    const { id } = await this.resolve(sandbox);
    const token = await new SandboxTokens(store.sandboxes).issue(id, chosen);
    await evidence.append(id, "sandbox.token", {});
    await address?.prepare(id);
    return { sandboxId: id, sidecarUrl: address?.sidecar(id) ?? `/sidecar/${id}`, token };
  }

  async stats(sandbox: string): Promise<SandboxStats> {
    // Looking at a sandbox is not using it.
    const record = await this.#finder.resolveRunning(sandbox);
    refuseForeign(record, this.#deps.driver.name);
    const { cpuMs, memoryBytes, pids } = await this.#deps.driver.usage(record.id);
    return { cpuMs, memoryBytes, pids, at: this.#deps.clock.now() };
  }

  async resolve(reference: string): Promise<SandboxRecord> {
    return await this.#finder.resolve(reference);
  }

  async resolveRunning(reference: string, options: WakeOptions = {}): Promise<SandboxRecord> {
    const found = this.#finder.mustLive(await this.#finder.resolve(reference));
    refuseForeign(found, this.#deps.driver.name);
    const isWoken = this.#waker.isWanted(found, options);
    const record = isWoken ? await this.#waker.wake(found.id, options) : this.#finder.mustRun(found);
    this.#deps.activity.touch(record.id, record.lastActivityAt);
    await this.#deps.aws?.ready(record, options.signal);
    return this.#watched(record);
  }

  /** After a restart: what a running sandbox was given goes on. */
  async takeOver(sandboxId: string): Promise<void> {
    const record = await this.resolve(sandboxId);
    if (record.state === "running") this.#deps.aws?.keep(record);
  }

  /** Compares the store with the driver; also done before any status is shown. */
  async reconcile(): Promise<void> {
    await this.#reconciler.reconcile();
  }

  /** What a server does besides when it starts: settles what happened to containers while nobody looked. */
  async settleAtStart(): Promise<void> {
    const start = (id: string) => this.start(id);
    await new StartupReconciler(this.#deps, { claims: this.#claims, ender: this.#ender, start }).run();
  }

  /** Ends what has reached the end of its ttl; the number of those that were due. */
  async expire(): Promise<number> {
    return await this.#reconciler.expire();
  }

  /** Ends one whose life is over; nothing happens when another process is at it. */
  async expireOne(record: SandboxRecord): Promise<void> {
    await this.#reconciler.expireOne(record);
  }

  /** Lets go of what this process watches; sandboxes go on. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#watchdog.close();
    await this.#deps.aws?.close();
  }

  #info(record: SandboxRecord): SandboxInfo {
    return { ...toSandboxInfo(record, this.#deps.address), phase: this.#waker.phase(record.id) };
  }

  #watched(record: SandboxRecord): SandboxRecord {
    this.#watchdog.watch(record);
    this.#deps.aws?.keep(record);
    return record;
  }

  #letGo(sandboxId: string): void {
    this.#watchdog.forget(sandboxId);
    this.#deps.aws?.forget(sandboxId);
  }

  async #destroyNow(id: string): Promise<void> {
    const record = await this.#deps.store.sandboxes.get(id);
    if (record === undefined) return;
    try {
      await this.#ender.destroy(record, undefined);
    } catch (thrown) {
      if (isAidoError(thrown)) throw thrown;
      throw new AidoError("CONTAINER_REMOVAL_FAILED", `Sandbox ${id} could not be removed completely`, {
        hint: `Try \`aido sandbox destroy --sandbox ${id}\` again.`,
        details: { id },
        cause: thrown,
      });
    }
  }

  async #findForDestroy(sandbox: string): Promise<SandboxRecord> {
    const deleted = await this.#deps.store.sandboxes.get(sandbox);
    const record = deleted ?? (await this.resolve(sandbox));
    refuseForeign(record, this.#deps.driver.name);
    return record;
  }

  /** The record as the driver's truth makes it; raises CONTAINER_EXPIRED when it has just ended for good. */
  async #fresh(sandbox: string): Promise<SandboxRecord> {
    const record = await this.#reconciler.reconcileOne(await this.resolve(sandbox));
    return record.state === "deleted" ? await this.resolve(record.id) : record;
  }

  async #own(id: string): Promise<SandboxRecord> {
    const record = (await this.#deps.store.sandboxes.get(id)) ?? (await this.resolve(id));
    refuseForeign(record, this.#deps.driver.name);
    return record;
  }

  #able(): Promise<DriverCapabilities> {
    this.#capabilities ??= this.#untilFailure(this.#deps.driver.capabilities());
    return this.#capabilities;
  }

  /** One that was not answered is asked for anew by the next. */
  #untilFailure(asked: Promise<DriverCapabilities>): Promise<DriverCapabilities> {
    asked.catch(() => {
      this.#capabilities = undefined;
    });
    return asked;
  }
}
