import type { Progress } from "@aido/sdk";
import { AidoError, type ErrorCode, isAidoError } from "@aido/sdk/protocol";
import { ANONYMOUS, ownerOf } from "../access/owner-label.ts";
import type { Container, ContainerSpec } from "../driver/driver.ts";
import { ExecUsers } from "../exec/exec-users.ts";
import type { SandboxRecord } from "../store/store.ts";
import { withTimeLimit } from "../supervisor/time-limit.ts";
import { PROFILE_DEFAULTS } from "./profiles.ts";
import { provideImage } from "./provide-image.ts";
import type { SandboxDeps } from "./sandbox-deps.ts";

/** Create, start and the supervisor's first answer; an image may take as long as it takes. */
const STEP_LIMIT_MS = 60_000;

export interface StartedContainer {
  containerId: string;
  imageEnv: Readonly<Record<string, string>>;
  startedAt: Date;
  expiresAt: Date | undefined;
}

type LauncherDeps = Pick<SandboxDeps, "driver" | "supervisors" | "clock" | "evidence" | "pullSidecarImages">;

/** Brings a record's container to where execs can be started in it. Cleans nothing up: its caller knows how. */
export class ContainerLauncher {
  readonly #deps: LauncherDeps;

  constructor(deps: LauncherDeps) {
    this.#deps = deps;
  }

  /** A container that is already there is started again with the files it has. */
  async bringUp(
    record: SandboxRecord,
    signal: AbortSignal,
    onProgress?: Progress,
  ): Promise<StartedContainer> {
    const { driver, clock } = this.#deps;
    // What was never started has no container; should a killed process have left one, it is what `create` gives back.
    const existing = record.state === "pending" ? undefined : await driver.inspect(record.id);
    const container = existing ?? (await this.#create(record, signal, onProgress));
    signal.throwIfAborted();
    // A connection to the former incarnation leads nowhere.
    this.#deps.supervisors.drop(record.id);
    await this.#step(record, "CONTAINER_START_FAILED", signal, (limit) => driver.start(record.id, limit));
    const startedAt = clock.now();
    await this.#step(record, "CONTAINER_START_FAILED", signal, (limit) =>
      this.configure(record, container.user, record.ttlMs, limit),
    );
    return {
      containerId: container.containerId,
      imageEnv: container.imageEnv ?? {},
      startedAt,
      expiresAt: record.ttlMs === 0 ? undefined : new Date(startedAt.getTime() + record.ttlMs),
    };
  }

  async configure(
    record: SandboxRecord,
    user: Container["user"],
    deadlineMs: number,
    signal?: AbortSignal,
  ): Promise<void> {
    const supervisor = this.#deps.supervisors.get(record);
    const settings = { deadlineMs, ...user, workdir: record.workdir };
    if (record.user === undefined || numericUser(record.user) !== undefined) {
      await supervisor.configure(settings, signal);
      return;
    }
    // A name is looked up in the image itself, which can be read once its supervisor is claimed.
    await supervisor.configure({ ...settings, workdir: "" }, signal);
    const named = await new ExecUsers().resolve(supervisor, record.user, signal).catch((thrown: unknown) => {
      throw isAidoError(thrown, "FILE_NOT_FOUND") ? noUsers(record, thrown) : thrown;
    });
    await supervisor.configure({ ...settings, ...named }, signal);
  }

  async #create(record: SandboxRecord, signal: AbortSignal, onProgress?: Progress): Promise<Container> {
    const { driver, evidence } = this.#deps;
    if (committedOf(record) === undefined) {
      await provideImage(this.#deps, record, { signal, ...(onProgress && { onProgress }) });
      signal.throwIfAborted();
    }
    const container = await this.#step(record, "CONTAINER_CREATION_FAILED", signal, (limit) =>
      driver.create(toContainerSpec(record), limit),
    );
    const programs = driver.standIn(record.image);
    await evidence.append(record.id, "container.created", {
      containerId: container.containerId,
      image: record.image,
      ...(programs === undefined ? {} : { programs }),
    });
    return container;
  }

  /** A failure without a code of its own gets `code`; an abort stays what it is. */
  async #step<T>(
    record: SandboxRecord,
    code: ErrorCode,
    signal: AbortSignal,
    work: (limit: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const limit = {
      clock: this.#deps.clock,
      limitMs: STEP_LIMIT_MS,
      what: `Starting sandbox ${record.id}`,
      signal,
    };
    try {
      const result = await withTimeLimit(limit, work);
      signal.throwIfAborted();
      return result;
    } catch (thrown) {
      if (isAidoError(thrown) || signal.aborted) throw thrown;
      throw new AidoError(code, `Sandbox ${record.id} could not be started`, {
        hint: "`aido doctor` checks what a sandbox needs.",
        details: { id: record.id, image: record.image },
        cause: thrown,
      });
    }
  }
}

function toContainerSpec(record: SandboxRecord): ContainerSpec {
  const { namePrefix, hasOwnName, standsAlone } = PROFILE_DEFAULTS[record.profile];
  // The backend has one place for each name, and somebody else's must not be found out there, nor taken.
  const ownName = hasOwnName && ownerOf(record.labels) === ANONYMOUS ? record.name : undefined;
  return {
    sandboxId: record.id,
    name: ownName ?? `${namePrefix}${record.id}`,
    image: record.image,
    committed: committedOf(record),
    isolation: record.isolation,
    network: standsAlone && record.network === "bridge" ? "isolated" : record.network,
    limits: record.limits,
    user: numericUser(record.user),
    workdir: record.workdir,
    env: record.env,
    mounts: record.mounts,
    labels: record.labels,
    privileged: record.privileged,
  };
}

/** Its own image is what a warm sandbox comes back from. */
function committedOf({ tier, warmImage }: SandboxRecord): string | undefined {
  return tier === "warm" ? warmImage : undefined;
}

/** Undefined for a name, which only the image can tell, and for nobody in particular. */
function numericUser(user: string | undefined): Container["user"] | undefined {
  if (user === undefined || !/^\d/.test(user)) return undefined;
  const [uid = 0, gid = uid] = user.split(":").map(Number);
  return { uid, gid };
}

function noUsers(record: SandboxRecord, cause: AidoError): AidoError {
  return new AidoError(
    "VALIDATION_ERROR",
    `The image ${record.image} has no /etc/passwd to find ${record.user} in`,
    {
      hint: "Give the user as numbers, for example 1000:1000.",
      details: { field: "user" },
      cause,
    },
  );
}
