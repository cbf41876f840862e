import type { Progress, Sandboxes, SandboxFilter } from "@aido/sdk";
import type {
  CreatedSandbox,
  CreateSandbox,
  EndReason,
  SandboxInfo,
  SandboxStats,
  SidecarAccess,
} from "@aido/sdk/protocol";
import { OWNER_LABEL } from "../access/owner-label.ts";
import { SandboxTokens } from "../access/sandbox-tokens.ts";
import type { DriverCapabilities } from "../driver/driver.ts";
import { type Capacity, capacityOf } from "../limits/capacity.ts";
import { DiskWatchdog } from "../limits/disk-watchdog.ts";
import { OwnerQuotas } from "../limits/owner-quotas.ts";
import type { SandboxRecord } from "../store/store.ts";
import { orAborted } from "../supervisor/time-limit.ts";
import { ColdStorage } from "../tier/cold-storage.ts";
import { TierKeeper } from "../tier/tier-keeper.ts";
import { limitsOf, withToken } from "./build-record.ts";
import { ChangedFiles } from "./changed-files.ts";
import { checkRequest, checkToken, checkTtl } from "./check-request.ts";
import { ContainerLauncher } from "./container-launcher.ts";
import { lifetimesOf } from "./lifetimes.ts";
import { provideImage } from "./provide-image.ts";
import { Reconciler } from "./reconciler.ts";
import { refuseForeign } from "./refuse-foreign.ts";
import { SandboxClaims } from "./sandbox-claims.ts";
import { SandboxDestroyer } from "./sandbox-destroyer.ts";
import { SandboxEnder } from "./sandbox-ender.ts";
import { SandboxFinder } from "./sandbox-finder.ts";
import type { LaunchOptions, PrepareOptions, SandboxLifecycle, StopOptions } from "./sandbox-lifecycle.ts";
import type { SandboxResolver } from "./sandbox-resolver.ts";
import { SandboxStarter, type StarterOptions } from "./sandbox-starter.ts";
import { SandboxStopper } from "./sandbox-stopper.ts";
import { SandboxWaker, type WakeOptions } from "./sandbox-waker.ts";
import { StartupReconciler } from "./startup-reconciler.ts";
import { toSandboxInfo } from "./to-sandbox-info.ts";
import { untilEnded } from "./until-ended.ts";

/** Sandboxes from their first record to their last evidence. */
export class SandboxService implements Sandboxes, SandboxResolver, SandboxLifecycle {
  readonly #deps: StarterOptions;
  readonly #capacity: Capacity;
  readonly #claims: SandboxClaims;
  readonly #destroyer: SandboxDestroyer;
  readonly #ender: SandboxEnder;
  readonly #finder: SandboxFinder;
  readonly #launcher: ContainerLauncher;
  readonly #quotas: OwnerQuotas;
  readonly #reconciler: Reconciler;
  readonly #starter: SandboxStarter;
  readonly #stopper: SandboxStopper;
  readonly #changed: ChangedFiles;
  readonly #waker: SandboxWaker;
  readonly #watchdog: DiskWatchdog;
  readonly #closing = new AbortController();
  #capabilities: Promise<DriverCapabilities> | undefined;

  constructor(options: StarterOptions) {
    this.#deps = options;
    this.#capabilities = options.capabilities && this.#untilFailure(options.capabilities);
    this.#capacity = capacityOf(options.store.sandboxes, () => this.reconcile(), options.capacity);
    this.#quotas = new OwnerQuotas(options.store.sandboxes, () => this.reconcile(), options.limitsOf);
    this.#claims = new SandboxClaims(options);
    this.#ender = new SandboxEnder(options);
    this.#changed = new ChangedFiles(options);
    this.#destroyer = new SandboxDestroyer(options, this.#claims, this.#ender);
    this.#finder = new SandboxFinder(options.store.sandboxes, options.clock);
    this.#launcher = new ContainerLauncher(options);
    this.#reconciler = new Reconciler(options, this.#ender, this.#claims);
    const tiers = new TierKeeper(options);
    this.#starter = new SandboxStarter(options, {
      claims: this.#claims,
      ender: this.#ender,
      launcher: this.#launcher,
      tiers,
      cold: new ColdStorage(options, this.#launcher),
      capabilities: (signal) => this.#able(signal),
      closing: this.#closing.signal,
      // What is pending was counted when it was asked for.
      room: (record, start) =>
        record.state === "stopped"
          ? this.#quotas.start(record, () => this.#capacity(start))
          : this.#capacity(start),
    });
    this.#stopper = new SandboxStopper(options, {
      ...{ claims: this.#claims, ender: this.#ender, tiers, settled: options.settled },
      changed: this.#changed,
      letGo: (id) => this.#letGo(id),
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
    const record = await this.#quotas.create(this.#asked(wanted), () =>
      this.#capacity(
        async () => (await pool?.claim(wanted, options.signal)) ?? (await (pool?.beside(create) ?? create())),
      ),
    );
    if (record.tokenHash !== undefined) await this.#deps.address?.prepare(record.id);
    return { ...this.#info(this.#watched(record)), token: wanted.token };
  }

  /** A checked request as a record that nobody has been told of. */
  build(request: CreateSandbox): Promise<SandboxRecord> {
    return this.#starter.build(request);
  }

  async prepare(request: CreateSandbox, options: PrepareOptions = {}): Promise<SandboxRecord> {
    return await this.#quotas.create(this.#asked(request), () => this.#starter.prepare(request, options));
  }

  async fetchImage(
    sandboxId: string,
    options: { signal?: AbortSignal | undefined; onProgress?: Progress | undefined } = {},
  ): Promise<void> {
    const record = await this.#own(sandboxId);
    await provideImage(this.#deps, record, {
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
      await this.#changed.tell(record);
      if (options.graceMs !== undefined) await driver.stop(record.id, options.graceMs);
      await this.#ender.retire(record, reason);
    });
    return (await store.sandboxes.get(sandboxId)) ?? (await this.resolve(sandboxId));
  }

  async tellChanges(sandboxId: string): Promise<void> {
    const record = await this.#deps.store.sandboxes.get(sandboxId);
    if (record !== undefined) await this.#changed.tell(record);
  }

  async untilEnded(sandboxId: string, signal: AbortSignal): Promise<SandboxRecord> {
    const look = async () => {
      const record = await this.#reconciler.reconcileOne(await this.#own(sandboxId));
      if (record.state === "running") this.#deps.aws?.keep(record);
      return record;
    };
    return await untilEnded(this.#deps, sandboxId, look, signal);
  }

  /** With an owner, only among that owner's. */
  async get(sandbox: string, owner?: string): Promise<SandboxInfo> {
    return this.#info(await this.#fresh(sandbox, owner));
  }

  async list(filter: SandboxFilter = {}): Promise<readonly SandboxInfo[]> {
    const { sandboxes } = this.#deps.store;
    await this.#reconciler.reconcile();
    const owner = filter.labels?.[OWNER_LABEL];
    const before = filter.before === undefined ? undefined : await this.#finder.cursor(filter.before, owner);
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
      await this.#own(id);
      await this.#stopper.stop(id, options);
    }
    return this.#info(await this.#own(id));
  }

  async destroy(sandbox: string, signal?: AbortSignal): Promise<void> {
    const deleted = await this.#deps.store.sandboxes.get(sandbox);
    const record = deleted ?? (await this.resolve(sandbox));
    refuseForeign(record, this.#deps.driver.name);
    // What another has left half removed is finished as what that one began.
    if (record.state === "deleted") await this.#reconciler.reconcileOne(record);
    this.#letGo(record.id);
    await this.#changed.tell(record);
    await this.#destroyer.destroy(record.id, signal);
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
    const { id, state } = record;
    // Stopped, started or destroyed meanwhile: what was worked out is about another state.
    if (!(await store.sandboxes.transition(id, state, state, { ttlMs, expiresAt })))
      return await this.setTtl(id, wantedMs);
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

  async resolve(reference: string, owner?: string): Promise<SandboxRecord> {
    return await this.#finder.resolve(reference, owner);
  }

  async resolveRunning(reference: string, options: WakeOptions = {}): Promise<SandboxRecord> {
    let found = this.#finder.mustLive(await this.#finder.resolve(reference));
    refuseForeign(found, this.#deps.driver.name);
    if (this.#stopper.isBegun(found)) {
      await this.#stopper.over(found.id, options.signal);
      found = this.#finder.mustLive(await this.#finder.resolve(found.id));
    }
    const isWoken = this.#waker.isWanted(found, options);
    const record = isWoken ? await this.#waker.wake(found.id, options) : this.#finder.mustRun(found);
    this.#deps.activity.touch(record.id, record.lastActivityAt);
    await this.#deps.aws?.ready(record, options.signal);
    return this.#watched(record);
  }

  /** After a restart: what a running sandbox was given goes on, and so does what holds it to its limits. */
  async takeOver(sandboxId: string): Promise<void> {
    const record = await this.resolve(sandboxId);
    if (record.state === "running") this.#watched(record);
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

  /** Ends one whose life is over; nothing happens when another process is at it. False when it is not over any more. */
  async expireOne(record: SandboxRecord): Promise<boolean> {
    return await this.#reconciler.expireOne(record);
  }

  /** Lets go of what this process watches; sandboxes go on. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#watchdog.close();
    await this.#deps.aws?.close();
  }

  /** What a request counts for; one that no sandbox can be made of is refused before it is counted. */
  #asked(request: CreateSandbox): Pick<SandboxRecord, "labels" | "limits"> {
    checkRequest(request);
    const { profile = "aido", overrides = {} } = this.#deps;
    return { labels: request.labels ?? {}, limits: limitsOf(request, profile, overrides) };
  }

  #info(record: SandboxRecord): SandboxInfo {
    const { address, driver } = this.#deps;
    const programs = record.driver === driver.name ? driver.standIn(record.image) : undefined;
    return { ...toSandboxInfo(record, address), programs, phase: this.#waker.phase(record.id) };
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

  /** The record as the driver's truth makes it; raises CONTAINER_EXPIRED when it has just ended for good. */
  async #fresh(sandbox: string, owner?: string): Promise<SandboxRecord> {
    const record = await this.#reconciler.reconcileOne(await this.resolve(sandbox, owner));
    return record.state === "deleted" ? await this.resolve(record.id, owner) : record;
  }

  async #own(id: string): Promise<SandboxRecord> {
    const record = (await this.#deps.store.sandboxes.get(id)) ?? (await this.resolve(id));
    refuseForeign(record, this.#deps.driver.name);
    return record;
  }

  /** Asked once for all, so that no one's abort is another's. */
  #able(signal?: AbortSignal): Promise<DriverCapabilities> {
    this.#capabilities ??= this.#untilFailure(this.#deps.driver.capabilities());
    return orAborted(this.#capabilities, signal);
  }

  /** One that was not answered is asked for anew by the next. */
  #untilFailure(asked: Promise<DriverCapabilities>): Promise<DriverCapabilities> {
    asked.catch(() => {
      this.#capabilities = undefined;
    });
    return asked;
  }
}
