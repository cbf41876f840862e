import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { lstat, mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { AidoError, isAidoError } from "@aido/sdk/protocol";
import { runTar } from "../../core/backup/run-tar.ts";
import type { CommittedImage } from "../../core/driver/driver.ts";
import { removeTree } from "../../core/sandbox/remove-tree.ts";
import { findProgram } from "./find-program.ts";
import { VISIBLE_PATH } from "./host-image.ts";

const REFERENCE = /^local-image:([A-Za-z0-9][A-Za-z0-9_.-]{0,127})@([0-9a-f]{16})$/;
const FILE = /^([A-Za-z0-9][A-Za-z0-9_.-]{0,127})@([0-9a-f]{16})$/;
const PARTIAL = ".partial";

/**
 * The workdirs of local sandboxes, each kept in one compressed file below `.images` of the driver's root, which no
 * sandbox sees. Nothing runs in a sandbox that is packed, and whoever calls holds its lock. GNU tar reads the tree
 * without following a link and unpacks it into an empty directory, where no name can lead outside.
 */
export class CommittedArchives {
  readonly #directory: string;

  constructor(root: string) {
    this.#directory = join(root, ".images");
  }

  async pack(sandboxId: string, work: string, signal?: AbortSignal): Promise<CommittedImage> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    await this.#removePartial(sandboxId);
    const name = `${sandboxId}@${randomBytes(8).toString("hex")}`;
    const file = join(this.#directory, name);
    const partial = `${file}${PARTIAL}`;
    try {
      // Its bytes are the sandbox's: for nobody else to read.
      await (await open(partial, "wx", 0o600)).close();
      await this.#tar(
        ["--create", `--file=${partial}`, `--directory=${work}`, ...this.#format(), "."],
        signal,
      );
      await sync(partial);
      await rename(partial, file);
      await sync(this.#directory);
    } catch (thrown) {
      await rm(partial, { force: true });
      throw thrown;
    }
    return await this.#image(name);
  }

  /** What is at `work` goes: a process that died while it unpacked leaves half of it. */
  async unpack(reference: string, sandboxId: string, work: string, signal?: AbortSignal): Promise<void> {
    const file = await this.#find(reference);
    if (file === undefined) {
      throw new AidoError("IMAGE_NOT_FOUND", `The files that sandbox ${sandboxId} was kept in are gone`, {
        details: { image: reference },
      });
    }
    await removeTree(work);
    await mkdir(work, { recursive: true, mode: 0o755 });
    await this.#tar(["--extract", `--file=${file}`, `--directory=${work}`, "--preserve-permissions"], signal);
  }

  async remove(reference: string): Promise<void> {
    const file = await this.#find(reference);
    if (file !== undefined) await rm(file, { force: true });
  }

  async list(sandboxId: string | undefined): Promise<readonly CommittedImage[]> {
    const names = (await this.#names()).filter((name) => {
      const id = FILE.exec(name)?.[1];
      return id !== undefined && (sandboxId === undefined || id === sandboxId);
    });
    const images = await Promise.all(names.map((name) => this.#image(name).catch(ignoreMissing)));
    return images
      .filter((image) => image !== undefined)
      .toSorted((a, b) => b.createdAt.getTime() - a.createdAt.getTime());
  }

  /** Sockets are not kept: nothing listens on them any more. */
  #format(): string[] {
    const compress = findProgram("zstd", VISIBLE_PATH) === undefined ? "gzip -1" : "zstd -1 -T0 -q";
    return ["--format=posix", "--sparse", "--warning=no-file-ignored", `--use-compress-program=${compress}`];
  }

  async #tar(argv: readonly string[], signal: AbortSignal | undefined): Promise<void> {
    const exactly = ["--numeric-owner", "--xattrs", "--xattrs-include=user.*"];
    await runTar([...exactly, ...argv], signal).catch((thrown: unknown) => {
      if (!isAidoError(thrown) || !/no space left|quota exceeded/i.test(thrown.message)) throw thrown;
      throw new AidoError("DISK_FULL", "No space is left on the disk for the files of a sandbox", {
        hint: "Free some space and try again; the sandbox is as it was.",
        cause: thrown,
      });
    });
  }

  async #find(reference: string): Promise<string | undefined> {
    const [, id, key] = REFERENCE.exec(reference) ?? [];
    if (id === undefined) {
      throw new AidoError(
        "FORBIDDEN",
        `${JSON.stringify(reference.slice(0, 80))} is no image of the local driver`,
      );
    }
    const file = join(this.#directory, `${id}@${key}`);
    return (await lstat(file).catch(ignoreMissing)) === undefined ? undefined : file;
  }

  async #image(name: string): Promise<CommittedImage> {
    const { size, mtime } = await lstat(join(this.#directory, name));
    const sandboxId = FILE.exec(name)?.[1] ?? "";
    return { reference: `local-image:${name}`, sandboxId, createdAt: mtime, bytes: size };
  }

  async #removePartial(sandboxId: string): Promise<void> {
    for (const name of await this.#names()) {
      if (!name.startsWith(`${sandboxId}@`) || !name.endsWith(PARTIAL)) continue;
      await rm(join(this.#directory, name), { force: true });
    }
  }

  async #names(): Promise<readonly string[]> {
    return (await readdir(this.#directory).catch(ignoreMissing)) ?? [];
  }
}

function ignoreMissing(thrown: NodeJS.ErrnoException): undefined {
  if (thrown.code !== "ENOENT") throw thrown;
}

async function sync(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
