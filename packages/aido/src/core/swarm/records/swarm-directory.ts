import { constants, readdirSync, rmSync } from "node:fs";
import { mkdir, open } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { AidoError } from "@aido/sdk/protocol";
import { writeAtomically, writeJson } from "../../run/write-atomically.ts";
import { StateDirectory } from "../state/state-directory.ts";

const NAME = "swarm";
const MOST_BYTES = 4 * 1024 * 1024;
const TEMPORARY = /\.[0-9a-f]{12}\.tmp$/;

/** `.aimi/swarm`: what aido alone keeps about a swarm. Nothing in it is followed when it is a link. */
export class SwarmDirectory {
  readonly #project: string;

  constructor(project: string) {
    this.#project = project;
  }

  /** A file's JSON; undefined when it is missing or no JSON: whatever is here can be done without. */
  async readJson(name: string): Promise<unknown> {
    return await this.#within(async (path) => {
      const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
      const handle = await open(path(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch(() => undefined);
      if (handle === undefined) return undefined;
      try {
        const stats = await handle.stat();
        if (!stats.isFile() || stats.size > MOST_BYTES) return undefined;
        return JSON.parse(await handle.readFile("utf8"));
      } catch {
        return undefined;
      } finally {
        await handle.close();
      }
    });
  }

  async writeJson(name: string, value: unknown): Promise<void> {
    await this.within(async (path) => await writeJson(path(name), value, { mode: 0o600 }));
  }

  async remove(name: string): Promise<void> {
    await this.#within(async (path) => rmSync(path(name), { force: true }));
  }

  /** What processes that were killed while they wrote left behind; only for whoever drives the swarm. */
  async sweep(): Promise<void> {
    await this.#within(async (path) => {
      for (const name of readdirSync(path(".")))
        if (TEMPORARY.test(name)) rmSync(path(name), { force: true });
    });
  }

  /** With the directory there, and paths in it that stay what they are while the work goes on. */
  async within<Result>(work: (path: (name: string) => string) => Promise<Result>): Promise<Result> {
    await using aimi = await StateDirectory.make(this.#project);
    const isNew = await mkdir(aimi.path(NAME)).then(
      () => true,
      (thrown: NodeJS.ErrnoException) => {
        if (thrown.code === "EEXIST") return false;
        throw thrown;
      },
    );
    return await this.#opened(aimi, async (path) => {
      // A clone that brings such files along must not say how anything is run; see `findCarried`.
      if (isNew) await writeAtomically(path(".gitignore"), "*\n");
      return await work(path);
    });
  }

  async #within<Result>(
    work: (path: (name: string) => string) => Promise<Result>,
  ): Promise<Result | undefined> {
    await using aimi = await StateDirectory.open(this.#project);
    if (aimi === undefined) return undefined;
    try {
      return await this.#opened(aimi, work);
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw thrown;
    }
  }

  async #opened<Result>(
    aimi: StateDirectory,
    work: (path: (name: string) => string) => Promise<Result>,
  ): Promise<Result> {
    const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
    const handle = await open(aimi.path(NAME), O_RDONLY | O_DIRECTORY | O_NOFOLLOW).catch(
      (thrown: NodeJS.ErrnoException) => {
        if (thrown.code !== "ELOOP" && thrown.code !== "ENOTDIR") throw thrown;
        const shown = join(this.#project, ".aimi", NAME);
        throw new AidoError(
          "INVALID_PATH",
          `${shown} is not a directory, or is a link, which is not followed`,
          {
            hint: "Move it away; it is made anew.",
            cause: thrown,
          },
        );
      },
    );
    try {
      return await work((name) => {
        if (isAbsolute(name) || name.includes("/")) throw new TypeError(`no plain name: ${name}`);
        return `/proc/self/fd/${handle.fd}/${name}`;
      });
    } finally {
      await handle.close();
    }
  }
}
