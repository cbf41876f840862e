import { isUtf8 } from "node:buffer";
import { closeSync, constants, fstatSync, openSync } from "node:fs";
import { open, readdir, realpath, stat } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import type { RunFile } from "@aido/sdk";
import { AidoError } from "@aido/sdk/protocol";
import { compileGlob, type GlobSegment, segmentFits } from "../core/run/glob.ts";
import { Wildcard } from "../core/run/wildcard.ts";
import { isInnerPath } from "./inner-path.ts";

const MAX_FILES = 100_000;
const ANY_NAME: GlobSegment = { kind: "wild", wildcard: new Wildcard("*") };

/**
 * The project files that the patterns name, each once, in the order of their names. Wildcards pass over
 * dot-directories and `node_modules`; a directory stands for all it holds. Linked files count with their
 * content, as long as it lies in the project.
 */
export async function collectInputs(
  projectDir: string,
  patterns: readonly string[],
): Promise<readonly RunFile[]> {
  const root = await realpath(projectDir);
  const found = new Map<string, string>();
  for (const pattern of patterns) {
    const before = found.size;
    const walk = new InputWalk(root, pattern, found);
    await walk.run();
    if (found.size === before && !walk.matched) {
      throw new AidoError("INPUT_NOT_FOUND", `No file matches the input ${JSON.stringify(pattern)}`, {
        hint: `Patterns are relative to ${projectDir}. Correct or remove it.`,
        details: { pattern, projectDir },
      });
    }
  }
  const paths = [...found.keys()].sort();
  return await Promise.all(paths.map((path) => toRunFile(path, found.get(path) ?? "")));
}

/** A file of the project as part of a request; its content is read when it is asked for. */
export async function toRunFile(path: string, source: string): Promise<RunFile> {
  const mode = modeOf(path, source);
  return {
    path,
    executable: (mode & 0o111) !== 0,
    async *content() {
      const file = await open(source, constants.O_RDONLY | constants.O_NOFOLLOW);
      yield* file.createReadStream() as AsyncIterable<Uint8Array>;
    },
  };
}

/** Opening it is what counts: permissions are not all that can stand in the way. At once, so that few are open. */
function modeOf(path: string, source: string): number {
  let file: number | undefined;
  try {
    file = openSync(source, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    return fstatSync(file).mode;
  } catch (thrown) {
    throw (thrown as NodeJS.ErrnoException).code === "EACCES" ? notReadable(path, thrown) : thrown;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

class InputWalk {
  matched = false;
  readonly #root: string;
  readonly #pattern: string;
  readonly #found: Map<string, string>;

  constructor(root: string, pattern: string, found: Map<string, string>) {
    this.#root = root;
    this.#pattern = pattern;
    this.#found = found;
  }

  async run(): Promise<void> {
    if (!isInnerPath(this.#pattern)) throw this.#leaves(this.#pattern);
    const alternatives = compileGlob(this.#pattern);
    if (alternatives === undefined) {
      throw new AidoError(
        "INVALID_SPEC",
        `The input ${JSON.stringify(this.#pattern)} has too many alternatives`,
      );
    }
    for (const segments of alternatives) {
      if (segments.some((segment) => segment.kind === "literal" && segment.text === ".."))
        throw this.#leaves(this.#pattern);
      await this.#directory("", segments);
    }
  }

  async #directory(path: string, segments: readonly GlobSegment[]): Promise<void> {
    const [segment, ...rest] = segments;
    if (segment === undefined) return;
    if (segment.kind === "literal") return await this.#entry(join(path, segment.text), rest);
    if (segment.kind === "any") await this.#directory(path, rest.length === 0 ? [ANY_NAME] : rest);
    for (const entry of await this.#list(path)) {
      if (isSkipped(entry)) continue;
      const child = join(path, entry.name);
      if (!entry.isText) {
        if (segment.kind === "any" ? entry.isDirectory() : segmentFits(segment, entry.name))
          throw notText(child);
        continue;
      }
      if (segment.kind === "any") {
        // Links are not followed here: a link to a parent would never end.
        if (entry.isDirectory()) await this.#directory(child, segments);
      } else if (segmentFits(segment, entry.name)) {
        await this.#entry(child, rest);
      }
    }
  }

  async #entry(path: string, rest: readonly GlobSegment[]): Promise<void> {
    const real = await realpath(join(this.#root, path)).catch(missingAsUndefined);
    if (real === undefined) return;
    if (real !== this.#root && !real.startsWith(this.#root + sep)) throw this.#leaves(path);
    const info = await stat(real);
    if (info.isFile() && rest.length === 0) this.#add(path, real);
    if (!info.isDirectory()) return;
    if (rest.length > 0) await this.#directory(path, rest);
    else if (this.#namesDirectory(path)) await this.#directory(path, [{ kind: "any" }]);
  }

  /** `data` and `data/` mean what is in it; a directory that `*` happens to match is passed over. */
  #namesDirectory(path: string): boolean {
    return relative(path, this.#pattern.replace(/\/+$/, "")) === "";
  }

  #add(path: string, real: string): void {
    this.matched = true;
    this.#found.set(path.split(sep).join("/"), real);
    if (this.#found.size <= MAX_FILES) return;
    throw new AidoError("INVALID_SPEC", `The inputs are more than ${MAX_FILES} files`, {
      hint: "Name the files that the task needs.",
      details: { pattern: this.#pattern },
    });
  }

  async #list(path: string): Promise<readonly Entry[]> {
    const options = { withFileTypes: true, encoding: "buffer" } as const;
    const entries =
      (await readdir(join(this.#root, path), options).catch((thrown: NodeJS.ErrnoException) => {
        if (thrown.code === "EACCES") throw notReadable(path, thrown);
        return missingAsUndefined(thrown);
      })) ?? [];
    return entries
      .map((entry) => ({
        name: entry.name.toString(),
        isText: isUtf8(entry.name),
        isDirectory: () => entry.isDirectory(),
      }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  #leaves(path: string): AidoError {
    return new AidoError("INVALID_PATH", `The input ${JSON.stringify(path)} lies outside the project`, {
      hint: "Inputs are files of the directory that holds the spec. Copy the file there, or remove the pattern.",
      details: { pattern: this.#pattern, path },
    });
  }
}

interface Entry {
  name: string;
  /** False for a name that is not UTF-8, which the text does not say. */
  isText: boolean;
  isDirectory(): boolean;
}

function notReadable(path: string, cause: unknown): AidoError {
  return new AidoError("INPUT_NOT_FOUND", `The input ${path} may not be read`, {
    hint: "Change its permissions, or write a pattern that does not match it.",
    details: { path },
    cause,
  });
}

function notText(path: string): AidoError {
  return new AidoError("INVALID_PATH", `The input ${JSON.stringify(path)} has a name that is not UTF-8`, {
    hint: "Rename it, or write a pattern that does not match it.",
    details: { path },
  });
}

function isSkipped(entry: Entry): boolean {
  return (entry.isDirectory() && entry.name.startsWith(".")) || entry.name === "node_modules";
}

function missingAsUndefined(thrown: NodeJS.ErrnoException): undefined {
  if (thrown.code === "ENOENT" || thrown.code === "ENOTDIR" || thrown.code === "ELOOP") return undefined;
  throw thrown;
}
