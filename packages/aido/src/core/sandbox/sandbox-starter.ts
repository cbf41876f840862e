import { mkdir } from "node:fs/promises";
import type { Progress } from "@aido/sdk";
import {
  AidoError,
  type CreateSandbox,
  isAidoError,
  type ProfileName,
  toAidoError,
} from "@aido/sdk/protocol";
import type { PublicAddress } from "../access/public-address.ts";
import type { DriverCapabilities } from "../driver/driver.ts";
import type { LimitsOf } from "../limits/owner-quotas.ts";
import { UnenforcedLimits } from "../limits/unenforced-limits.ts";
import type { SandboxRecord } from "../store/store.ts";
import type { ColdStorage } from "../tier/cold-storage.ts";
import { STARTED } from "../tier/tier-fields.ts";
import type { TierKeeper } from "../tier/tier-keeper.ts";
import { type WayBack, waysBack } from "../tier/ways-back.ts";
import { WorkspaceHolds } from "../workspace/workspace-holds.ts";
import { buildRecord, type ProfileOverrides } from "./build-record.ts";
import { checkCapabilities } from "./check-capabilities.ts";
import { checkRequest } from "./check-request.ts";
import type { ContainerLauncher } from "./container-launcher.ts";
import { PROFILE_DEFAULTS } from "./profiles.ts";
import { refusePull } from "./provide-image.ts";
import type { SandboxClaims } from "./sandbox-claims.ts";
import type { SandboxDeps } from "./sandbox-deps.ts";
import type { SandboxEnder } from "./sandbox-ender.ts";
import type { LaunchOptions, PrepareOptions } from "./sandbox-lifecycle.ts";
import type { SandboxPool } from "./sandbox-pool.ts";
import { sidecarImage } from "./sidecar-image.ts";

export interface StarterOptions extends SandboxDeps {
  /** Short, unique, safe in file and container names. */
  readonly newId: () => string;
  readonly profile?: ProfileName | undefined;
  readonly overrides?: ProfileOverrides | undefined;
  /** What the driver can do, when it was asked already. */
  readonly capabilities?: Promise<DriverCapabilities> | undefined;
  /** The most that run at once on this store; no limit when undefined. */
  readonly capacity?: number | undefined;
  /** What each owner may have; everything when undefined. */
  readonly limitsOf?: LimitsOf | undefined;
  /** Asked at each create: a server opens its pool when everything else is there. */
  readonly pool?: (() => SandboxPool | undefined) | undefined;
  /** Where callers find the server, for the addresses that sandboxes are known by. */
  readonly address?: PublicAddress | undefined;
  /** What is still being read from a sandbox's workspace, which ends with its container. */
  readonly settled?: ((sandboxId: string) => Promise<void> | undefined) | undefined;
  /** The first look at a new sandbox, before anybody else can use it. */
  readonly onCreated?: ((record: SandboxRecord) => Promise<void>) | undefined;
}

interface StarterParts {
  claims: SandboxClaims;
  ender: SandboxEnder;
  launcher: ContainerLauncher;
  tiers: TierKeeper;
  cold: ColdStorage;
  capabilities: (signal: AbortSignal | undefined) => Promise<DriverCapabilities>;
  /** Aborted when this process lets go of everything. */
  closing: AbortSignal;
  /** Starts it, or raises QUOTA_EXCEEDED. Whoever calls `create` has asked for the room already. */
  room: <Started>(record: SandboxRecord, start: () => Promise<Started>) => Promise<Started>;
}

interface StartOptions {
  signal?: AbortSignal | undefined;
  onProgress?: Progress | undefined;
  actor?: string | undefined;
}

/** The ways to a running sandbox. Whichever step fails, what it had made is gone when the failure is told. */
export class SandboxStarter {
  readonly #deps: StarterOptions;
  readonly #parts: StarterParts;
  readonly #workspaces: WorkspaceHolds;
  readonly #unenforced: UnenforcedLimits;

  constructor(deps: StarterOptions, parts: StarterParts) {
    this.#deps = deps;
    this.#parts = parts;
    this.#workspaces = new WorkspaceHolds(deps, deps.overrides?.maxWorkspaces);
    this.#unenforced = new UnenforcedLimits(deps.logger);
  }

  async create(request: CreateSandbox, options: StartOptions): Promise<SandboxRecord> {
    const { claims, ender } = this.#parts;
    const built = await this.build(request, { signal: options.signal });
    return await claims.hold(built.id, "create", async (lost) => {
      const wanted = await this.#insertWithWorkspace(built, request.workspace);
      try {
        const record = await this.#launch(wanted, options, lost);
        await this.#deps.onCreated?.(record);
        return record;
      } catch (thrown) {
        await this.#recordFailure(wanted, thrown);
        await ender.destroy(wanted, "failed");
        throw thrown;
      }
    });
  }

  async prepare(request: CreateSandbox, options: PrepareOptions): Promise<SandboxRecord> {
    const wanted = await this.build(request, options);
    return await this.#parts.claims.hold(wanted.id, "create", async () => {
      await this.#insert(wanted, options.actor);
      return wanted;
    });
  }

  /** A fresh container for a sandbox that does not run. */
  async launch(id: string, options: LaunchOptions): Promise<SandboxRecord> {
    const { driver, store } = this.#deps;
    const { claims, ender } = this.#parts;
    return await claims.hold(id, "launch", async (lost) => {
      const before = await this.#startable(id);
      const changes = {
        mounts: options.mounts ?? before.mounts,
        network: options.network ?? before.network,
        privileged: options.privileged ?? before.privileged,
      };
      const record = { ...before, ...changes };
      checkCapabilities(record, await this.#parts.capabilities(options.signal));
      await store.sandboxes.update(id, changes);
      try {
        return await this.#parts.room(record, async () => {
          if (record.state === "stopped") await driver.remove(id);
          return await this.#launch(record, options, lost);
        });
      } catch (thrown) {
        await this.#recordFailure(record, thrown, options.actor);
        await ender.removeContainer(id);
        const patch = {
          endReason: "failed",
          containerId: undefined,
          tier: undefined,
          tierSince: undefined,
        } as const;
        await store.sandboxes.transition(id, ["pending", "stopped"], "stopped", patch);
        throw thrown;
      }
    });
  }

  /** With the files it had, wherever they are; from nothing when it never had any. */
  async start(id: string, options: StartOptions): Promise<SandboxRecord> {
    const { driver, store } = this.#deps;
    const { claims } = this.#parts;
    return await claims.holdAfterDemotion(id, "launch", async (lost) => {
      const known = await store.sandboxes.get(id);
      if (known?.state === "running") return known;
      const record = await this.#startable(id);
      checkCapabilities(record, await this.#parts.capabilities(options.signal));
      const ways = waysBack(record, (await driver.inspect(id)) !== undefined);
      return await this.#parts.room(record, async () => {
        let failure: unknown = lostFiles(record);
        for (const way of ways) {
          try {
            return await this.#startThrough(way, record, options, lost);
          } catch (thrown) {
            failure = thrown;
            if (!isWayClosed(way, thrown)) break;
          }
        }
        throw failure;
      });
    });
  }

  async #startThrough(
    way: WayBack,
    record: SandboxRecord,
    options: StartOptions,
    lost: AbortSignal,
  ): Promise<SandboxRecord> {
    const { driver, store } = this.#deps;
    const { ender, tiers } = this.#parts;
    try {
      return await this.#launch(await tiers.enter(record, way), options, lost);
    } catch (thrown) {
      await this.#recordFailure(record, thrown);
      // A container that was there before holds the sandbox's files and outlives a failed start.
      if (way === "hot") await driver.stop(record.id, 0);
      else await ender.removeContainer(record.id);
      await store.sandboxes.transition(record.id, "pending", "stopped", { endReason: "failed" });
      throw thrown;
    }
  }

  /** A record in state `pending` that nobody has been told of. */
  async build(request: CreateSandbox, options: PrepareOptions = {}): Promise<SandboxRecord> {
    const { driver, clock, newId, profile = "aido", overrides = {}, aws } = this.#deps;
    const mounts = options.mounts ?? (() => []);
    checkRequest(request);
    const capabilities = await this.#parts.capabilities(options.signal);
    const image = request.image ?? (await this.#profileImage(request.profile ?? profile, capabilities));
    const record = buildRecord(
      { ...request, image, env: aws?.environment(request) ?? request.env },
      {
        driver: driver.name,
        now: clock.now(),
        newId,
        profile,
        overrides,
        mounts,
        networks: capabilities.networks,
      },
    );
    checkCapabilities(record, capabilities);
    await refusePull(this.#deps, record);
    this.#unenforced.tell(request.limits ?? {}, capabilities);
    if (aws === undefined && request.permissions?.aws !== undefined) throw noAws();
    aws?.check(record);
    return record;
  }

  /** Undefined when the configuration's or the profile's own will do. */
  async #profileImage(profile: ProfileName, capabilities: DriverCapabilities): Promise<string | undefined> {
    const { driver, overrides } = this.#deps;
    if (!PROFILE_DEFAULTS[profile].hasSidecar) return undefined;
    const options = { ...overrides?.sidecar, defaultImage: overrides?.image };
    return await sidecarImage(driver, capabilities, options);
  }

  async #insertWithWorkspace(built: SandboxRecord, workspace: string | undefined): Promise<SandboxRecord> {
    if (workspace === undefined) {
      await this.#insert(built, undefined);
      return built;
    }
    const record = await this.#workspaces.mount(built, workspace);
    try {
      await this.#insert(record, undefined);
    } catch (thrown) {
      await this.#workspaces.giveBack(record);
      throw thrown;
    }
    return record;
  }

  async #insert(record: SandboxRecord, actor: string | undefined): Promise<void> {
    const { store, dataDir, evidence } = this.#deps;
    await store.sandboxes.insert(record);
    await mkdir(dataDir.sandbox(record.id), { recursive: true, mode: 0o700 });
    const { name, profile, image, driver, isolation, network, limits, ttlMs, privileged } = record;
    const detail = { name, profile, image, driver, isolation, network, limits, ttlMs, privileged };
    await evidence.append(record.id, "sandbox.created", detail, actor);
  }

  async #launch(record: SandboxRecord, options: StartOptions, lost: AbortSignal): Promise<SandboxRecord> {
    const { store, evidence, aws } = this.#deps;
    const ends = [lost, this.#parts.closing, ...(options.signal === undefined ? [] : [options.signal])];
    const signal = AbortSignal.any(ends);
    signal.throwIfAborted();
    // What it may not have is refused before anything is made for it.
    const grant = await aws?.assume(record, signal);
    const started = await this.#parts.launcher.bringUp(record, signal, options.onProgress);
    if (record.tier === "cold") {
      options.onProgress?.("Restoring its files");
      await this.#parts.cold.snapshots().restore(record, { signal, onProgress: options.onProgress });
    }
    await aws?.offer(record, grant, signal);
    const patch = {
      ...started,
      stoppedAt: undefined,
      endReason: undefined,
      lastActivityAt: this.#deps.clock.now(),
      ...STARTED,
    };
    if (!(await store.sandboxes.transition(record.id, ["pending", "stopped"], "running", patch))) {
      throw new AidoError("CANCELLED", `Sandbox ${record.id} was destroyed while it was being started`, {
        details: { id: record.id },
      });
    }
    await evidence.append(record.id, "sandbox.started", { containerId: started.containerId }, options.actor);
    await aws?.tell(record, grant);
    return { ...record, ...patch, state: "running" };
  }

  async #startable(id: string): Promise<SandboxRecord> {
    const record = await this.#deps.store.sandboxes.get(id);
    if (record?.state === "pending" || record?.state === "stopped") return record;
    if (record?.state === "running") {
      throw new AidoError("CONTAINER_BUSY", `Sandbox ${id} already runs`, {
        hint: "Wait for it to end, or stop it first.",
        details: { id },
      });
    }
    throw new AidoError("CONTAINER_NOT_FOUND", `Sandbox ${id} has been destroyed`, { details: { id } });
  }

  async #recordFailure(record: SandboxRecord, thrown: unknown, actor?: string): Promise<void> {
    const { code, message } = toAidoError(thrown);
    this.#deps.aws?.forget(record.id);
    await this.#deps.evidence.append(record.id, "sandbox.failed", { code, message }, actor);
  }
}

/** Whether the next way may be tried: this one has ended for good, and nothing but this one is lost by it. */
function isWayClosed(way: WayBack, thrown: unknown): boolean {
  if (way === "warm") return isAidoError(thrown, "IMAGE_NOT_FOUND");
  return way === "hot" && isAidoError(thrown, "CONTAINER_START_FAILED");
}

function lostFiles({ id, tier }: SandboxRecord): AidoError {
  return new AidoError("CONTAINER_LOST", `Sandbox ${id} cannot be resumed: none of its files is left`, {
    hint: `Remove it with \`aido sandbox destroy --sandbox ${id}\` and make a new one.`,
    details: { id, tier },
  });
}

function noAws(): AidoError {
  return new AidoError("AWS_NOT_CONFIGURED", "AWS permissions cannot be given here");
}
