import { constants } from "node:fs";
import { type FileHandle, mkdir, open } from "node:fs/promises";
import { join } from "node:path";
import { AidoError } from "@aido/sdk/protocol";

const NAME = ".aimi";

/**
 * The project's `.aimi`. A repository comes from anywhere and may hold a link in its place, so the directory is opened
 * without following one, and everything in it is reached through what was opened.
 */
export class StateDirectory implements AsyncDisposable {
  readonly #handle: FileHandle;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  /** Undefined when there is none. */
  static async open(project: string): Promise<StateDirectory | undefined> {
    const path = join(project, NAME);
    try {
      const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
      return new StateDirectory(await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    } catch (thrown) {
      const { code } = thrown as NodeJS.ErrnoException;
      if (code === "ENOENT") return undefined;
      if (code !== "ENOTDIR" && code !== "ELOOP") throw unusable(path, thrown);
      throw new AidoError("INVALID_PATH", `${path} is not a directory, or is a link, which is not followed`, {
        hint: "Move it away; `aido swarm-init` makes a new one.",
        cause: thrown,
      });
    }
  }

  static async make(project: string): Promise<StateDirectory> {
    const path = join(project, NAME);
    try {
      await mkdir(path);
    } catch (thrown) {
      const { code } = thrown as NodeJS.ErrnoException;
      if (code !== "EEXIST") throw unusable(path, thrown);
    }
    const directory = await StateDirectory.open(project);
    if (directory === undefined) throw new AidoError("FILE_NOT_FOUND", `${path} was removed meanwhile`);
    return directory;
  }

  /** Where an entry is reached, whatever `.aimi` stands for by now. */
  path(name: string): string {
    return `/proc/self/fd/${this.#handle.fd}/${name}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }
}

function unusable(path: string, thrown: unknown): AidoError {
  const { code, message } = thrown as NodeJS.ErrnoException;
  return new AidoError("INVALID_PATH", `Cannot use ${path}: ${code ?? message}`, {
    hint: "Give the project's directory with --dir, or run the command in it.",
    cause: thrown,
  });
}
