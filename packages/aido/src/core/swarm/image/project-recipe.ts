import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { AidoError } from "@aido/sdk/protocol";
import type { ContextEntry, ContextFile } from "../../driver/driver-images.ts";
import { checksumOf } from "./checksum.ts";
import { projectImage } from "./image-names.ts";
import { findLockFiles } from "./lock-files.ts";
import type { Project } from "./open-project.ts";
import { checkOwnDockerfile, fillTemplate, OWN_DOCKERFILE } from "./project-dockerfile.ts";
import { leadsOut, readProjectTree, type TreeFile } from "./project-tree.ts";
import { readBlobs } from "./read-blobs.ts";
import { readSettingsFiles } from "./settings-files.ts";

export interface ProjectRecipe {
  readonly slug: string;
  readonly tag: string;
  readonly commit: string;
  readonly dockerfile: string;
  readonly dockerfilePath: string | undefined;
  readonly madeFrom: readonly string[];
  readonly leftOut: readonly string[];
  /** The images that it starts from, by name. */
  readonly bases: readonly string[];
  /** Of everything that it is made of, with the ids of the images that it starts from. */
  checksum(ids: readonly string[]): string;
  files(): AsyncIterable<ContextEntry>;
}

const SETTINGS = ".aimi/";
const MOST_LINK_BYTES = 4096;

/** How a project's image is made: by its own Dockerfile, which sees the project as it is, or by the template. */
export async function projectRecipe(project: Project, templates: string): Promise<ProjectRecipe> {
  const { git, slug, commit } = project;
  const [tree, onDisk] = await Promise.all([
    readProjectTree(git, commit),
    readSettingsFiles(project.directory),
  ]);
  const leftOut = [...tree.leftOut, ...(onDisk?.leftOut ?? [])];
  const committed = tree.files.filter(({ path }) => onDisk === undefined || !isSetting(path));
  const links = await readLinks(project, committed);
  const source = committed.filter((file) => {
    const target = links.get(file.id);
    if (file.mode !== "120000" || (target !== undefined && !leadsOut(file.path, target))) return true;
    leftOut.push(file.path);
    return false;
  });
  const settings = onDisk?.files ?? [];
  const own = settings.find(({ path }) => path === OWN_DOCKERFILE) ?? (await committedOwn(project, source));
  const found = findLockFiles(new Set(source.map(({ path }) => path)));
  const dockerfile =
    own === undefined
      ? fillTemplate(await readFile(join(templates, "project.Dockerfile"), "utf8"), {
          found,
          hasSource: source.length > 0,
          hasSettings: settings.length > 0,
        })
      : Buffer.from(own.content).toString("utf8");
  const tag = projectImage(slug);
  const bases = own === undefined ? [] : checkOwnDockerfile(dockerfile);
  if (bases.includes(tag)) {
    throw new AidoError("VALIDATION_ERROR", `${OWN_DOCKERFILE} starts from ${tag}, the image that it makes`, {
      hint: "Begin with `FROM aimi-sandbox:base`.",
      details: { field: "dockerfile", file: OWN_DOCKERFILE },
    });
  }
  return {
    ...{ slug, commit, leftOut, dockerfile, bases, tag },
    dockerfilePath: own === undefined ? undefined : OWN_DOCKERFILE,
    madeFrom: own === undefined ? found.map(({ file }) => file) : [OWN_DOCKERFILE],
    checksum: (ids) =>
      checksumOf([
        ...ids,
        dockerfile,
        ...source.flatMap(({ path, mode, id }) => [path, mode, id]),
        "settings",
        ...settings.flatMap(({ path, content, executable }) => [path, executable ? "x" : "-", content]),
      ]),
    files: () => (own === undefined ? apart(project, source, settings) : together(project, source, settings)),
  };
}

/** For the template: the source and the settings in directories of their own, beside the Dockerfile. */
async function* apart(
  project: Project,
  source: readonly TreeFile[],
  settings: readonly ContextFile[],
): AsyncGenerator<ContextEntry> {
  for await (const entry of entries(project, source)) yield { ...entry, path: `source/${entry.path}` };
  for (const file of settings) yield { ...file, path: `settings/${file.path}` };
}

/** For the project's own Dockerfile: the project's root, as it is. */
async function* together(
  project: Project,
  source: readonly TreeFile[],
  settings: readonly ContextFile[],
): AsyncGenerator<ContextEntry> {
  const isOwn = ({ path }: { path: string }) => path === OWN_DOCKERFILE;
  yield* entries(
    project,
    source.filter((file) => !isOwn(file)),
  );
  yield* settings.filter((file) => !isOwn(file));
}

async function* entries({ git }: Project, files: readonly TreeFile[]): AsyncGenerator<ContextEntry> {
  for await (const { file, content } of readBlobs(git, files)) {
    const { path, mode } = file;
    if (mode === "120000") yield { path, target: content.toString("utf8") };
    else yield { path, content, executable: mode === "100755" };
  }
}

/** Where links lead to, by the object that says so; those without a reasonable target are not among them. */
async function readLinks({ git }: Project, files: readonly TreeFile[]): Promise<Map<string, string>> {
  const links = files.filter(({ mode, bytes }) => mode === "120000" && bytes <= MOST_LINK_BYTES);
  const targets = new Map<string, string>();
  for await (const { file, content } of readBlobs(git, links)) {
    const target = content.toString("utf8");
    if (Buffer.from(target).equals(content)) targets.set(file.id, target);
  }
  return targets;
}

async function committedOwn(
  { git }: Project,
  source: readonly TreeFile[],
): Promise<{ content: Buffer } | undefined> {
  const file = source.find(({ path, mode }) => path === OWN_DOCKERFILE && mode !== "120000");
  if (file === undefined) return undefined;
  for await (const { content } of readBlobs(git, [file])) return { content };
  return undefined;
}

function isSetting(path: string): boolean {
  return path.startsWith(SETTINGS) || path === SETTINGS.slice(0, -1);
}
