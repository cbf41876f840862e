import { firstLine, type GitAnswer, type GitOptions, type GitSurroundings, runGit } from "../run-git.ts";

/**
 * In force for every call, before the user's own settings. Trees come from workers: nothing in them may start a program here,
 * and what is fetched is checked before it counts.
 */
const SETTINGS = [
  "core.hooksPath=/dev/null",
  "core.fsmonitor=false",
  "core.attributesFile=/dev/null",
  "core.quotePath=false",
  "merge.renormalize=false",
  "merge.conflictStyle=merge",
  "submodule.recurse=false",
  "fetch.recurseSubmodules=false",
  "fetch.fsckObjects=true",
  // Few objects would be unpacked one by one, and those of a refused fetch would stay and not be checked again.
  "fetch.unpackLimit=1",
  "gc.auto=0",
  "maintenance.auto=false",
].flatMap((setting) => ["-c", setting]);

/** git's plumbing in the user's repository, without a work tree: no checkout, index or attributes file is read or written. */
export class Git {
  readonly directory: string;
  readonly #surroundings: GitSurroundings;

  /** `directory` is the repository's own, which all its work trees share. */
  constructor(directory: string, surroundings: GitSurroundings) {
    this.directory = directory;
    this.#surroundings = surroundings;
  }

  async run(args: readonly string[], options: GitOptions): Promise<GitAnswer> {
    const env = { GIT_DIR: this.directory, GIT_IMPLICIT_WORK_TREE: "0", ...options.env };
    return await runGit([...SETTINGS, ...args], this.directory, { ...options, env }, this.#surroundings);
  }

  /** Its first line. */
  async line(args: readonly string[], options: GitOptions): Promise<string> {
    return firstLine((await this.run(args, options)).stdout);
  }
}
