/** The images that a swarm's workers are made of. Made here, on this machine's engine, and never pulled by these names. */
export interface SwarmImages {
  /** The base, made when it is missing, or when it was made here from parts that have changed since. */
  ensureBase(request?: BaseRequest): Promise<EnsuredImage>;
  /** The project's image, made when it is missing or what it is made of has changed; the base before it, if need be. */
  ensureProject(request: ProjectRequest): Promise<EnsuredProject>;
}

interface Told {
  readonly onProgress?: ((step: string) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What the base starts from: an image, or Debian's packages, which are fetched on this machine without any registry. */
export type BaseGround = { readonly kind: "image"; readonly image: string } | { readonly kind: "debian" };

export interface BaseRequest extends Told {
  /** Undefined is as the base that is there was made, else the public image. */
  readonly ground?: BaseGround | undefined;
  /** Whether it has the Claude Code CLI, which is most of its size. Undefined is as the base that is there, else yes. */
  readonly claude?: boolean | undefined;
  /** Make it also when nothing has changed. */
  readonly force?: boolean | undefined;
}

export interface ProjectRequest extends Told {
  /** The project's directory. */
  readonly project: string;
  /** Of the base, should it have to be made. */
  readonly ground?: BaseGround | undefined;
  readonly claude?: boolean | undefined;
  /** Make the project's image also when nothing has changed. */
  readonly force?: boolean | undefined;
}

export interface EnsuredImage {
  /** What workers are created from. */
  readonly image: string;
  readonly id: string;
  readonly checksum: string | undefined;
  /** False when all was as before and nothing was made. */
  readonly rebuilt: boolean;
  readonly bytes: number;
}

export interface EnsuredProject extends EnsuredImage {
  readonly slug: string;
  /** `.aimi/Dockerfile.sandbox`, or the lock files that the template installs from. */
  readonly madeFrom: readonly string[];
  /** Files of the project that were left out, such as links that lead out of it; the first few. */
  readonly leftOut: readonly string[];
}
