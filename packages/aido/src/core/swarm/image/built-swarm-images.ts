import { AidoError, isAidoError } from "@aido/sdk/protocol";
import type { Driver } from "../../driver/driver.ts";
import type { DriverImage, ImageBuild } from "../../driver/driver-images.ts";
import type { BuildLimits } from "../../image/image-service.ts";
import { type BaseSources, baseRecipe, fileOf, hostOptions } from "./base-recipe.ts";
import { fetchKey, fetchOnHost } from "./fetch-on-host.ts";
import {
  BASE_IMAGE,
  CHECKSUM_LABEL,
  CLAUDE_LABEL,
  COMMIT_LABEL,
  DEBIAN_IMAGE,
  GROUND_LABEL,
  PUBLIC_GROUND,
} from "./image-names.ts";
import { openProject } from "./open-project.ts";
import { type ProjectRecipe, projectRecipe } from "./project-recipe.ts";
import type {
  BaseGround,
  BaseRequest,
  EnsuredImage,
  EnsuredProject,
  ProjectRequest,
  SwarmImages,
} from "./swarm-images.ts";

export interface BuiltSwarmImagesDeps {
  readonly driver: Pick<Driver, "name" | "ensureImage" | "images">;
  readonly sources: BaseSources;
  readonly limits: BuildLimits;
}

type Build = Pick<ImageBuild, "tag" | "dockerfile" | "dockerfilePath" | "files" | "labels">;
type Told = Pick<BaseRequest, "onProgress" | "signal">;

const SHOWN_LEFT_OUT = 20;
const TOLD = /^aimi: (.*)$/;
/** The command of the base's Dockerfile that npm takes part in. */
const CLAUDE_STEP = /install-claude/;

/** Builds the images of swarms on an engine. Whether one is up to date is in its labels, so that any process can tell. */
export class BuiltSwarmImages implements SwarmImages {
  readonly #deps: BuiltSwarmImagesDeps;

  constructor(deps: BuiltSwarmImagesDeps) {
    this.#deps = deps;
  }

  async ensureBase(request: BaseRequest = {}): Promise<EnsuredImage> {
    this.#refuseWithoutImages();
    return await this.#ensureBase(request);
  }

  async ensureProject(request: ProjectRequest): Promise<EnsuredProject> {
    this.#refuseWithoutImages();
    const { project: directory, ground, claude, force, ...told } = request;
    const { sources } = this.#deps;
    // What is wrong with the project is told before minutes are spent on the base.
    const project = await openProject(directory, { env: sources.env, signal: told.signal });
    const recipe = await projectRecipe(project, sources.directory);
    const base = await this.#ensureBase({ ground, claude, ...told });
    const image = await this.#ensureProject(recipe, base, { ...told, force });
    const { slug, madeFrom } = recipe;
    return { ...image, slug, madeFrom, leftOut: recipe.leftOut.slice(0, SHOWN_LEFT_OUT) };
  }

  async #ensureBase(request: BaseRequest): Promise<EnsuredImage> {
    const { driver, sources, limits } = this.#deps;
    const there = await driver.images.find(BASE_IMAGE, request.signal);
    const made = there?.labels[GROUND_LABEL];
    const asked = request.ground !== undefined || request.claude !== undefined || request.force === true;
    // One that somebody else made stays as it is, unless another is asked for.
    if (there !== undefined && made === undefined && !asked) return toEnsured(BASE_IMAGE, there, false);
    const ground = request.ground ?? toGround(made);
    const withClaude = request.claude ?? there?.labels[CLAUDE_LABEL] !== "none";
    const from = ground.kind === "debian" ? DEBIAN_IMAGE : ground.image;
    const fetchHere = ground.kind === "debian" || limits.network === "none";
    const recipe = await baseRecipe(sources, { ground, from, withClaude });
    const isCurrent = there?.labels[CHECKSUM_LABEL] === recipe.checksum;
    if (there !== undefined && isCurrent && request.force !== true)
      return toEnsured(BASE_IMAGE, there, false);
    if (ground.kind === "debian") await this.#ensureDebian(request);
    else await this.#ensureGround(ground.image, request);
    request.onProgress?.(`Making ${BASE_IMAGE} from ${from}`);
    const { onProgress, signal } = request;
    const labels = {
      [CHECKSUM_LABEL]: recipe.checksum,
      [GROUND_LABEL]: from === DEBIAN_IMAGE ? "debian" : from,
      [CLAUDE_LABEL]: recipe.claude ?? "none",
    };
    const make = async (claudeFrom: "host" | "build") => {
      const files = await recipe.files(claudeFrom, { onProgress, signal });
      const build = { tag: BASE_IMAGE, dockerfile: recipe.dockerfile, files, labels };
      return await this.#build(build, request, there);
    };
    const image = await make(fetchHere ? "host" : "build").catch(async (thrown: unknown) => {
      if (fetchHere || !isAidoError(thrown, "IMAGE_BUILD_FAILED") || !CLAUDE_STEP.test(thrown.message))
        throw thrown;
      // Proxies and certificates of this machine are none of the build's.
      onProgress?.("The build could not fetch Claude Code; fetching it on this machine");
      return await make("host");
    });
    return toEnsured(BASE_IMAGE, image, true);
  }

  async #ensureProject(
    recipe: ProjectRecipe,
    base: EnsuredImage,
    request: Told & { force?: boolean | undefined },
  ): Promise<EnsuredImage> {
    const { driver } = this.#deps;
    const there = await driver.images.find(recipe.tag, request.signal);
    // Those that it starts from besides the base are made here as well, or pulled by their name.
    const others = recipe.bases.filter((image) => image !== BASE_IMAGE);
    const ids = [base.id];
    for (const image of others) {
      await driver.ensureImage(image, given(request));
      ids.push((await driver.images.find(image, request.signal))?.id ?? image);
    }
    const checksum = recipe.checksum(ids);
    if (there?.labels[CHECKSUM_LABEL] === checksum && request.force !== true)
      return toEnsured(recipe.tag, there, false);
    for (const path of recipe.leftOut.slice(0, SHOWN_LEFT_OUT))
      request.onProgress?.(`Left out: ${JSON.stringify(path)}`);
    request.onProgress?.(`Making ${recipe.tag} from ${recipe.madeFrom.join(", ") || BASE_IMAGE}`);
    const { tag, dockerfile, dockerfilePath } = recipe;
    const labels = { [CHECKSUM_LABEL]: checksum, [COMMIT_LABEL]: recipe.commit };
    const build = { tag, dockerfile, dockerfilePath, labels, files: recipe.files() };
    return toEnsured(tag, await this.#build(build, request, there), true);
  }

  async #ensureDebian(request: BaseRequest): Promise<void> {
    const { driver, sources } = this.#deps;
    const host = { ...hostOptions(sources), onProgress: request.onProgress, signal: request.signal };
    const key = await fetchKey("ground", host);
    const there = await driver.images.find(DEBIAN_IMAGE, request.signal);
    if (there?.labels[CHECKSUM_LABEL] === key) return;
    const tar = await fetchOnHost("ground", host);
    request.onProgress?.(`Making ${DEBIAN_IMAGE}`);
    await this.#build(
      {
        tag: DEBIAN_IMAGE,
        dockerfile: "FROM scratch\nADD ground.tar /\n",
        files: [await fileOf("ground.tar", tar, false)],
        labels: { [CHECKSUM_LABEL]: key },
      },
      request,
      there,
    );
  }

  async #ensureGround(image: string, request: Told): Promise<void> {
    try {
      await this.#deps.driver.ensureImage(image, given(request));
    } catch (thrown) {
      const error = thrown as AidoError;
      if (error.code !== "IMAGE_PULL_FAILED" && error.code !== "IMAGE_NOT_FOUND") throw thrown;
      throw new AidoError(error.code, `The base of swarms cannot be made from ${image}: ${error.message}`, {
        hint: "Without a registry it can be made of Debian's packages: `aido image build --swarm --from debian`.",
        details: error.details,
        cause: thrown,
      });
    }
  }

  /** What the name stood for before goes, unless something else is made of it. */
  async #build(
    build: Build,
    { onProgress, signal }: Told,
    before: DriverImage | undefined,
  ): Promise<DriverImage> {
    const { images } = this.#deps.driver;
    const { timeoutMs, ...limits } = this.#deps.limits;
    const late = AbortSignal.timeout(timeoutMs);
    try {
      const either = signal === undefined ? late : AbortSignal.any([signal, late]);
      const image = await images.build({ ...build, ...limits }, { onProgress, signal: either });
      if (before !== undefined && before.id !== image.id) {
        const old = await images.find(before.id, signal);
        if (old?.tags.length === 0) await images.remove(old.id, signal).catch(() => undefined);
      }
      return image;
    } catch (thrown) {
      if (!late.aborted || signal?.aborted === true) throw explained(build.tag, thrown);
      throw new AidoError(
        "IMAGE_BUILD_FAILED",
        `Making ${build.tag} took longer than ${timeoutMs / 1000} s and was ended`,
        { hint: "Install less, or raise images.buildTimeout.", cause: thrown },
      );
    }
  }

  #refuseWithoutImages(): void {
    const { driver } = this.#deps;
    if (driver.images.canBuild) return;
    throw new AidoError("UNSUPPORTED", `The ${driver.name} driver has no images, and swarms run in them`, {
      hint: "Use Docker for that: add `--driver docker`.",
    });
  }
}

/** What the base's own scripts tell of a failure says more than that a command failed. */
function explained(tag: string, thrown: unknown): unknown {
  if (!isAidoError(thrown, "IMAGE_BUILD_FAILED")) return thrown;
  const lines = String(thrown.details["log"] ?? "").split("\n");
  const [problem, ...more] = lines.flatMap((line) => TOLD.exec(line)?.[1] ?? []);
  if (problem === undefined) return thrown;
  return new AidoError(thrown.code, `${tag} cannot be made: ${problem}`, {
    hint: more.join("\n"),
    details: thrown.details,
    cause: thrown,
  });
}

function toGround(label: string | undefined): BaseGround {
  if (label === "debian") return { kind: "debian" };
  return { kind: "image", image: label ?? PUBLIC_GROUND };
}

function toEnsured(image: string, { id, labels, bytes }: DriverImage, rebuilt: boolean): EnsuredImage {
  return { image, id, checksum: labels[CHECKSUM_LABEL], rebuilt, bytes };
}

function given({ signal, onProgress }: Told) {
  return { ...(signal && { signal }), ...(onProgress && { onProgress }) };
}
