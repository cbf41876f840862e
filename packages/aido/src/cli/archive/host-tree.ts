import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { chmod, type FileHandle, link, mkdir, open, rename, symlink, unlink } from "node:fs/promises";

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/**
 * Makes files below one directory and nowhere else. Every step goes through an open directory, one component at a
 * time and without following links, so nothing that is put there meanwhile can lead it away.
 */
export class HostTree implements AsyncDisposable {
  readonly #root: FileHandle;

  private constructor(root: FileHandle) {
    this.#root = root;
  }

  /** The root itself is the user's word; links on the way to it are followed. */
  static async open(root: string): Promise<HostTree> {
    return new HostTree(await open(root, constants.O_RDONLY | constants.O_DIRECTORY));
  }

  /** Its owner can always work in it, whatever the mode says. */
  async directory(components: readonly string[], mode: number): Promise<void> {
    await this.#in(components, (path) => chmod(path, (mode & 0o777) | 0o700));
  }

  /** Appears under its name when it is complete; a file or link that is there already is replaced, not written through. */
  async file(
    components: readonly string[],
    file: { mode: number; modifiedAt?: Date; content: AsyncIterable<Uint8Array> },
  ): Promise<void> {
    await this.#in(components.slice(0, -1), async (parent) => {
      const temporary = `${parent}/.aido-${randomBytes(8).toString("hex")}`;
      const handle = await open(temporary, NEW_FILE, 0o600);
      try {
        for await (const chunk of file.content) await writeAll(handle, chunk);
        await handle.chmod(file.mode & 0o777);
        if (file.modifiedAt) await handle.utimes(file.modifiedAt, file.modifiedAt);
        await handle.close();
        await rename(temporary, `${parent}/${components.at(-1)}`);
      } catch (thrown) {
        await handle.close().catch(() => undefined);
        await unlink(temporary).catch(() => undefined);
        throw thrown;
      }
    });
  }

  async link(components: readonly string[], target: string): Promise<void> {
    await this.#in(components.slice(0, -1), (parent) =>
      replaceBy(`${parent}/${components.at(-1)}`, parent, (temporary) => symlink(target, temporary)),
    );
  }

  /** Another name for a file that this has made. */
  async sameFile(components: readonly string[], other: readonly string[]): Promise<void> {
    await this.#in(other.slice(0, -1), (from) =>
      this.#in(components.slice(0, -1), (parent) =>
        replaceBy(`${parent}/${components.at(-1)}`, parent, (temporary) =>
          link(`${from}/${other.at(-1)}`, temporary),
        ),
      ),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#root.close();
  }

  /** Runs `work` with a path that means the open directory itself, whatever happens to its name. */
  async #in(components: readonly string[], work: (path: string) => Promise<void>): Promise<void> {
    let current = this.#root;
    try {
      for (const component of components) {
        const path = `/proc/self/fd/${current.fd}/${component}`;
        await mkdir(path).catch(existing);
        const next = await open(path, DIRECTORY);
        if (current !== this.#root) await current.close();
        current = next;
      }
      await work(`/proc/self/fd/${current.fd}`);
    } finally {
      if (current !== this.#root) await current.close();
    }
  }
}

/** What is there under the name goes in one step. */
async function replaceBy(
  path: string,
  parent: string,
  make: (temporary: string) => Promise<void>,
): Promise<void> {
  const temporary = `${parent}/.aido-${randomBytes(8).toString("hex")}`;
  await make(temporary);
  try {
    await rename(temporary, path);
  } catch (thrown) {
    await unlink(temporary).catch(() => undefined);
    throw thrown;
  }
  // Renaming one name of a file to another of its names does nothing, and leaves both.
  await unlink(temporary).catch(() => undefined);
}

function existing(thrown: unknown): void {
  if (!(thrown instanceof Error && "code" in thrown && thrown.code === "EEXIST")) throw thrown;
}

async function writeAll(handle: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let offset = 0; offset < chunk.length; ) {
    offset += (await handle.write(chunk, offset, chunk.length - offset)).bytesWritten;
  }
}
