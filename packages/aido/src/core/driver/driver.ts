import type { Duplex } from "node:stream";
import type { Isolation, Network, ResourceLimits } from "@aido/sdk/protocol";
import type { DriverImages } from "./driver-images.ts";

/**
 * Where sandboxes run. One implementation per backend; core knows only this. A driver finds what it owns by
 * label, never by name, and only what carries its own scope. No method is optional: what a driver cannot do,
 * `capabilities` says and the method refuses with UNSUPPORTED.
 */
export interface Driver {
  readonly name: string;
  readonly images: DriverImages;
  /** Asks the backend; rejects with RUNTIME_UNAVAILABLE and a hint when it does not answer. */
  capabilities(signal?: AbortSignal): Promise<DriverCapabilities>;
  /** Whether `ensureImage` would have nothing to fetch. */
  hasImage(image: string, signal?: AbortSignal): Promise<boolean>;
  /** What a sandbox really runs where the driver has no images and takes a name for a wish; undefined where it runs the image. */
  standIn(image: string): string | undefined;
  /** Makes the image available. Resolves at once when it is there. Pulls are retried once. */
  ensureImage(
    image: string,
    options?: { signal?: AbortSignal; onProgress?: (step: string) => void },
  ): Promise<void>;
  /** Makes the container, not started. Idempotent by sandbox id. */
  create(spec: ContainerSpec, signal?: AbortSignal): Promise<Container>;
  /** Starts it; the supervisor accepts connections when this resolves. Starting what runs is no error. */
  start(sandboxId: string, signal?: AbortSignal): Promise<void>;
  /** Ends every process: TERM, grace, KILL. Stopping what does not run is no error. */
  stop(sandboxId: string, graceMs: number, signal?: AbortSignal): Promise<void>;
  /** Idempotent: ends what runs and removes all that the driver made for the sandbox. */
  remove(sandboxId: string): Promise<void>;
  inspect(sandboxId: string): Promise<Container | undefined>;
  /** Every container of this driver's scope, whatever the store says; where one of several backends is away, its are `unreachable`. */
  list(): Promise<readonly Container[]>;
  /**
   * Keeps the files of a container that does not run as an image of the driver's own; the container stays as it is.
   * A new container made from it has every file with its owner, mode and time, as far as the container held them
   * itself: mounts are aido's own directories and stay where they are. Raises CONTAINER_BUSY while it runs, and
   * UNSUPPORTED when it keeps files where no image reaches. All or nothing, though a cut can leave an image that
   * only `committedImages` knows of.
   */
  commit(sandboxId: string, signal?: AbortSignal): Promise<CommittedImage>;
  /**
   * True when it is gone, also if it was before; false while a container or a later image is made from it. Raises
   * FORBIDDEN for what no commit of this scope has made.
   */
  removeImage(reference: string): Promise<boolean>;
  /** What commits of this scope have made and nobody has removed, of one sandbox or of all; newest first. */
  committedImages(sandboxId?: string): Promise<readonly CommittedImage[]>;
  /** A byte stream to the sandbox's supervisor; several may be open at once. */
  connect(sandboxId: string, signal?: AbortSignal): Promise<Duplex>;
  /** Read from the kernel's accounting, cheap enough to poll. */
  usage(sandboxId: string): Promise<ContainerUsage>;
  /**
   * Bytes on disk that a sandbox has written outside its mounts, whatever its own user may read of them; a walk, so not
   * for polling often. Undefined where only the sandbox's supervisor can tell.
   */
  written(sandboxId: string, signal?: AbortSignal): Promise<number | undefined>;
  /** Tells the ends of containers as they happen, until the signal is aborted. */
  watch(onEnd: (sandboxId: string) => void, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/** `isolated` is a bridge of the sandbox's own: it reaches outside as `bridge` does, and no other sandbox. */
export type ContainerNetwork = Network | "isolated";

export interface DriverCapabilities {
  /** What the backend calls itself, for people. */
  version: string;
  isolations: readonly Isolation[];
  /** Those among them that this backend gives with network `none` only. */
  offline?: readonly Isolation[] | undefined;
  /** What to do for those that are missing. */
  install?: Readonly<Partial<Record<Isolation, string>>> | undefined;
  networks: readonly Network[];
  /** Which limits are enforced by the backend rather than watched or best effort. */
  enforced: { cpus: boolean; memory: boolean; pids: boolean; disk: boolean };
  /** Whether execs may run as users other than the sandbox's own. */
  users: boolean;
  images: boolean;
  privileged: boolean;
  /** Plain sentences about what this machine cannot give. */
  warnings: readonly string[];
}

export interface Mount {
  /** A directory or file of aido's own on the host; never a path from a user or a sandbox. */
  source: string;
  target: string;
  readOnly: boolean;
}

export interface ContainerSpec {
  sandboxId: string;
  /** What the backend calls it, exactly; taken by another, CONTAINER_NAME_TAKEN is raised. Ownership is by label. */
  name: string;
  image: string;
  /** An image that `commit` made of this sandbox: its files take the place of those of `image`. */
  committed?: string | undefined;
  isolation: Isolation;
  network: ContainerNetwork;
  limits: ResourceLimits;
  /** Numeric; the user that execs run as unless they say otherwise. Undefined leaves it to the driver (never root). */
  user: { uid: number; gid: number } | undefined;
  workdir: string;
  env: Readonly<Record<string, string>>;
  mounts: readonly Mount[];
  labels: Readonly<Record<string, string>>;
  privileged: boolean;
}

/** `unreachable`: what has it does not answer, and nobody knows how it is. */
export type ContainerState = "created" | "running" | "exited" | "unreachable";

export interface Container {
  sandboxId: string;
  containerId: string;
  state: ContainerState;
  /** What the backend itself calls that, where it tells more kinds apart: `paused`, `dead`. */
  nativeState?: string | undefined;
  /** The supervisor's exit code once it has ended; see supervisor/protocol.ts for the codes it uses. */
  exitCode: number | undefined;
  outOfMemory: boolean;
  image: string;
  /** What the backend runs it with, where there is a choice. */
  runtime?: string | undefined;
  /** What the image sets for every process; the sandbox's own variables go over it. */
  imageEnv?: Readonly<Record<string, string>> | undefined;
  user: { uid: number; gid: number };
  startedAt: Date | undefined;
  finishedAt: Date | undefined;
}

export interface CommittedImage {
  /** Names it to the driver that made it, and stays the same as long as it exists. */
  reference: string;
  sandboxId: string;
  createdAt: Date;
  bytes: number;
}

export interface ContainerUsage {
  cpuMs: number;
  memoryBytes: number;
  pids: number;
}
