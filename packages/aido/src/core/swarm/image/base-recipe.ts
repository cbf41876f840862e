import { createReadStream } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { ContextEntry, ContextFile } from "../../driver/driver-images.ts";
import { checksumOf } from "./checksum.ts";
import { type FetchOptions, fetchKey, fetchOnHost } from "./fetch-on-host.ts";
import type { BaseGround } from "./swarm-images.ts";

export interface BaseSources {
  /** Holds the Dockerfile of the base, its scripts and the template of projects. */
  readonly directory: string;
  /** The program that becomes /opt/aimi/acp-adapter. */
  readonly adapter: () => string;
  /** Where fetched parts are kept. */
  readonly cache: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface BaseRecipe {
  readonly dockerfile: string;
  readonly checksum: string;
  /** The version of Claude Code in it. */
  readonly claude: string | undefined;
  /** With Claude Code fetched here, or left to npm in the build. */
  files(
    claudeFrom: "host" | "build",
    fetching: Pick<FetchOptions, "onProgress" | "signal">,
  ): Promise<readonly ContextEntry[]>;
}

const CHUNK_BYTES = 1024 * 1024;
const SCRIPTS = ["install-system", "install-claude", "install-tools", "install-dependencies"];
const NO_CLAUDE: ContextFile = { path: "fetched/without-claude", content: Buffer.of(), executable: false };
const FROM_NPM: ContextFile = { path: "fetched/.keep", content: Buffer.of(), executable: false };

export const hostOptions = (sources: BaseSources): FetchOptions => ({
  script: join(sources.directory, "on-host.sh"),
  cache: sources.cache,
  env: sources.env,
});

/** How the base is made of a ground: by the same steps for each. */
export async function baseRecipe(
  sources: BaseSources,
  wanted: { ground: BaseGround; from: string; withClaude: boolean },
): Promise<BaseRecipe> {
  const { directory } = sources;
  const [template, adapter, ...contents] = await Promise.all([
    readFile(join(directory, "Dockerfile"), "utf8"),
    readFile(sources.adapter()),
    ...SCRIPTS.map((name) => readFile(join(directory, name))),
  ]);
  const dockerfile = template.replace(/^FROM .*$/m, () => `FROM ${wanted.from}`);
  const claude = wanted.withClaude ? /^ARG CLAUDE_CODE_VERSION=(.+)$/m.exec(template)?.[1] : undefined;
  const files: ContextFile[] = SCRIPTS.map((path, index) => ({
    path,
    content: contents[index] ?? Buffer.of(),
    executable: true,
  }));
  files.push({ path: "acp-adapter", content: adapter, executable: true });
  const checksum = checksumOf([
    ...[dockerfile, JSON.stringify(wanted.ground), claude ?? "without claude"],
    ...(wanted.ground.kind === "debian" ? [await fetchKey("ground", hostOptions(sources))] : []),
    ...files.flatMap(({ path, content }) => [path, content]),
  ]);
  return {
    dockerfile,
    checksum,
    claude,
    files: async (claudeFrom, fetching) => {
      if (claude === undefined) return [...files, NO_CLAUDE];
      if (claudeFrom === "build") return [...files, FROM_NPM];
      const path = await fetchOnHost("claude", { ...hostOptions(sources), ...fetching });
      return [...files, await fileOf("fetched/claude", path, true)];
    },
  };
}

/** A file of this machine, read when it is sent. */
export async function fileOf(path: string, real: string, executable: boolean): Promise<ContextEntry> {
  const { size } = await stat(real);
  return {
    path,
    bytes: size,
    executable,
    read: () => createReadStream(real, { end: Math.max(size - 1, 0), highWaterMark: CHUNK_BYTES }),
  };
}
