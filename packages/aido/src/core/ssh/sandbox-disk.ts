import { posix } from "node:path";
import { AidoError, isAidoError } from "@aido/sdk/protocol";
import { type FileRecord, readRecords } from "../files/record-reader.ts";
import { toSandboxPath } from "../files/sandbox-path.ts";
import type { ToolRun } from "../supervisor/tool-run.ts";
import type { Attributes, DiskDeps } from "./disk-deps.ts";
import { linkMember } from "./disk-members.ts";
import { FileRewrite } from "./file-rewrite.ts";
import { SequentialRead } from "./sequential-read.ts";
import { writeAttributes } from "./write-attributes.ts";

const MAX_LINKS = 40;
const PERMISSIONS = 0o7777;

export interface OpenForWriting {
  create: boolean;
  /** Refuse what is there already. */
  exclusive: boolean;
  truncate: boolean;
  append: boolean;
  mode: number | undefined;
}

/**
 * What SFTP asks of a file system, done inside the sandbox by the supervisor's tools as the login's user: no path
 * is opened here. The tools are more generous than SFTP (they make parents, remove trees), so what SFTP refuses is
 * looked for first.
 */
export class SandboxDisk {
  readonly #deps: DiskDeps;

  constructor(deps: DiskDeps) {
    this.#deps = deps;
  }

  /** The entry itself, also when it is a link. */
  async lstat(path: string): Promise<FileRecord> {
    const run = await this.#tool("stat", path);
    for await (const record of readRecords(run.stdout)) return record;
    await run.done;
    throw missing(path);
  }

  /** What the path leads to. */
  async stat(path: string): Promise<FileRecord> {
    const record = await this.lstat(path);
    return record.type === "symlink" ? this.lstat(await this.realpath(path)) : record;
  }

  /** Absolute and without links. The last part need not be there. */
  async realpath(path: string): Promise<string> {
    const parts = this.#absolute(path).split("/");
    let resolved = "/";
    for (let links = 0; parts.length > 0; ) {
      const part = parts.shift() ?? "";
      if (part === "" || part === ".") continue;
      const next = part === ".." ? posix.dirname(resolved) : posix.join(resolved, part);
      const record = part === ".." ? undefined : await this.#find(next);
      if (record === undefined && part !== ".." && parts.some((rest) => rest !== "")) throw missing(path);
      if (record?.type === "symlink") {
        links += 1;
        if (links > MAX_LINKS) throw new AidoError("INVALID_PATH", `${path} goes through too many links`);
        if (record.target.startsWith("/")) resolved = "/";
        parts.unshift(...record.target.split("/"));
      } else {
        resolved = next;
      }
    }
    return resolved;
  }

  async readlink(path: string): Promise<string> {
    const record = await this.lstat(path);
    if (record.type !== "symlink") throw new AidoError("INVALID_PATH", `${path} is no link`);
    return record.target;
  }

  /** Entries of the directory, one after another; leaving early ends the tool. */
  async *list(path: string): AsyncGenerator<FileRecord, void, undefined> {
    const run = await this.#tool("list", path, ["0"]);
    yield* readRecords(run.stdout);
    await run.done;
  }

  async mkdir(path: string, mode: number): Promise<void> {
    await this.#checkParent(path);
    if ((await this.#find(path)) !== undefined) throw exists(path);
    await (await this.#change("mkdir", path, [octal(mode)])).done;
    await this.#deps.tell("files.mkdir", { path });
  }

  /** A file or a link. */
  async remove(path: string): Promise<void> {
    if ((await this.lstat(path)).type === "directory") throw isDirectory(path);
    await this.#remove(path);
  }

  async rmdir(path: string): Promise<void> {
    if ((await this.lstat(path)).type !== "directory") {
      throw new AidoError("INVALID_PATH", `${path} is no directory`);
    }
    for await (const _ of this.list(path)) {
      throw new AidoError("FILE_EXISTS", `${path} is not empty`, { details: { errno: "ENOTEMPTY" } });
    }
    await this.#remove(path);
  }

  async rename(from: string, to: string, options: { replace: boolean }): Promise<void> {
    await this.#checkParent(to);
    if (!options.replace && (await this.#find(to)) !== undefined) throw exists(to);
    const target = this.#absolute(to);
    await (await this.#change("move", from, [target])).done;
    await this.#deps.tell("files.move", { from, to });
  }

  async symlink(target: string, path: string): Promise<void> {
    toSandboxPath("/", target);
    await this.#checkParent(path);
    if ((await this.#find(path)) !== undefined) throw exists(path);
    const whole = this.#absolute(path);
    const archive = Buffer.concat([...linkMember(posix.basename(whole), target)]);
    await (await this.#change("untar", posix.dirname(whole), [], archive)).done;
    await this.#deps.tell("files.link", { path });
  }

  async setAttributes(path: string, attributes: Attributes): Promise<void> {
    const whole = await this.realpath(path);
    const record = await this.lstat(whole);
    if (attributes.size !== undefined && attributes.size !== record.size) {
      const file = await this.openWrite(whole, { ...KEEP, mode: undefined });
      try {
        await file.truncate(attributes.size);
        await file.close();
      } finally {
        file.abort();
      }
    }
    const { mode = record.mode } = attributes;
    const isNewMode = (mode & PERMISSIONS) !== (record.mode & PERMISSIONS);
    if (!isNewMode && attributes.modifiedAt === undefined) return;
    const wanted = { mode: isNewMode ? mode & PERMISSIONS : undefined, modifiedAt: attributes.modifiedAt };
    await writeAttributes(this.#deps, await this.lstat(whole), whole, wanted);
    await this.#deps.tell("files.attributes", { path });
  }

  async openRead(path: string): Promise<SequentialRead> {
    const record = await this.stat(path);
    if (record.type === "directory") throw isDirectory(path);
    const whole = this.#absolute(path);
    return new SequentialRead((offset, signal) =>
      this.#deps.run(["read", "/", whole, String(offset)], { signal }),
    );
  }

  async openWrite(path: string, flags: OpenForWriting): Promise<FileRewrite> {
    const before = await this.#find(path, (found) => this.stat(found));
    if (before === undefined && !flags.create) throw missing(path);
    if (before !== undefined && flags.exclusive) throw exists(path);
    if (before?.type === "directory") throw isDirectory(path);
    if (before === undefined) {
      await this.#checkParent(path);
      // At once, so that a place where nothing may be written is told before the content is sent.
      await (await this.#change("write", path, [octal(flags.mode ?? 0o644)], new Uint8Array())).done;
    }
    const size = before === undefined || flags.truncate ? 0 : before.size;
    const { mode } = before ?? (await this.lstat(await this.realpath(path)));
    return new FileRewrite(this.#deps, {
      path: this.#absolute(path),
      size,
      isChanged: flags.truncate && before !== undefined && before.size > 0,
      append: flags.append,
      mode,
      setAttributes: (attributes) => this.setAttributes(path, attributes),
    });
  }

  async #remove(path: string): Promise<void> {
    await (await this.#change("remove", path)).done;
    await this.#deps.tell("files.remove", { path });
  }

  /** Undefined when there is nothing; other failures are told. */
  async #find(
    path: string,
    look: (path: string) => Promise<FileRecord> = (found) => this.lstat(found),
  ): Promise<FileRecord | undefined> {
    try {
      return await look(path);
    } catch (thrown) {
      if (isAidoError(thrown, "FILE_NOT_FOUND")) return undefined;
      throw thrown;
    }
  }

  async #checkParent(path: string): Promise<void> {
    const parent = posix.dirname(this.#absolute(path));
    if ((await this.stat(parent)).type === "directory") return;
    throw new AidoError("INVALID_PATH", `${parent} is no directory`);
  }

  #tool(tool: string, path: string, rest: readonly string[] = []): Promise<ToolRun> {
    return this.#deps.run([tool, "/", this.#absolute(path), ...rest]);
  }

  #change(tool: string, path: string, rest: readonly string[] = [], stdin?: Uint8Array): Promise<ToolRun> {
    const argv = [tool, "/", this.#absolute(path), ...rest];
    return this.#deps.run(argv, { isChange: true, ...(stdin === undefined ? {} : { stdin }) });
  }

  #absolute(path: string): string {
    const whole = path.startsWith("/") ? path : path === "" ? this.#deps.home : `${this.#deps.home}/${path}`;
    return toSandboxPath("/", whole).path;
  }
}

const KEEP = { create: false, exclusive: false, truncate: false, append: false };

function octal(mode: number): string {
  return (mode & PERMISSIONS).toString(8);
}

function missing(path: string): AidoError {
  return new AidoError("FILE_NOT_FOUND", `There is no ${path}`, { details: { errno: "ENOENT" } });
}

function exists(path: string): AidoError {
  return new AidoError("FILE_EXISTS", `${path} is there already`, { details: { errno: "EEXIST" } });
}

function isDirectory(path: string): AidoError {
  return new AidoError("INVALID_PATH", `${path} is a directory`, { details: { errno: "EISDIR" } });
}
