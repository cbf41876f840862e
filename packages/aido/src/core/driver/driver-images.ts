/** The images of a backend. A driver without images lists what it takes as one and refuses the rest with UNSUPPORTED. */
export interface DriverImages {
  /** False where there is nothing to build on and nothing to remove. */
  readonly canBuild: boolean;
  /** Those that sandboxes can be made from, without those that are the rest of a sandbox. */
  list(signal?: AbortSignal): Promise<readonly DriverImage[]>;
  /** By a name or an id; never asks a registry. */
  find(image: string, signal?: AbortSignal): Promise<DriverImage | undefined>;
  /** Raises IMAGE_BUILD_FAILED with the last of what the build said. Whichever way it ends, nothing half made stays. */
  build(build: ImageBuild, options?: BuildOptions): Promise<DriverImage>;
  /** Idempotent. Raises FORBIDDEN for what this driver's scope has not built, IMAGE_IN_USE while a sandbox has it. */
  remove(image: string, signal?: AbortSignal): Promise<void>;
}

export interface BuildOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((step: string) => void) | undefined;
}

export interface DriverImage {
  id: string;
  tags: readonly string[];
  bytes: number;
  createdAt: Date | undefined;
  /** Whom it runs as when nobody says otherwise; undefined is root. */
  user: string | undefined;
  /** Built by this driver's scope. */
  isOwn: boolean;
  labels: Readonly<Record<string, string>>;
}

export interface ImageBuild {
  /** The name it gets. */
  tag: string;
  dockerfile: string;
  /** Where it is in the context, in place of a file of that name; `Dockerfile` when undefined. */
  dockerfilePath?: string | undefined;
  /** The whole context, checked to be paths beneath one directory. Read once, and no more of it at a time than is sent. */
  files: Iterable<ContextEntry> | AsyncIterable<ContextEntry>;
  labels: Readonly<Record<string, string>>;
  memoryBytes: number;
  /** An image above it is removed again. */
  maxBytes: number;
  /** Of the commands that the build runs. */
  network: "bridge" | "none";
}

export interface ContextFile {
  path: string;
  content: Uint8Array;
  executable: boolean;
}

/** A file that is too large to be held. Of another length than it says, it fails the build. */
export interface ContextStream {
  path: string;
  bytes: number;
  read(): AsyncIterable<Uint8Array>;
  executable: boolean;
}

export interface ContextLink {
  path: string;
  target: string;
}

export type ContextEntry = ContextFile | ContextStream | ContextLink;
