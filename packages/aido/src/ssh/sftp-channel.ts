import { AidoError, toAidoError } from "@aido/sdk/protocol";
import type { SFTPWrapper, Attributes as WireAttributes } from "ssh2";
import type { SandboxDisk } from "../core/ssh/sandbox-disk.ts";
import type { SessionDeps } from "./session-channel.ts";
import { fromWireAttributes, toFileEntry, toWireAttributes } from "./sftp-attributes.ts";
import { type OpenFile, SftpHandles } from "./sftp-handles.ts";

/** What waits for its turn; well-behaved clients have a few dozen requests on the way. */
const MAX_WAITING = 4_096;
const MAX_WAITING_BYTES = 32 * 1024 * 1024;
/** Replies that the client's window does not take yet. */
const MAX_REPLIES = 64;
const WINDOW_POLL_MS = 5;
const MAX_READ_BYTES = 255 * 1024;
const NAMES_PER_REPLY = 64;
const UMASK = 0o022;
const OPEN = { write: 0x02, append: 0x04, create: 0x08, truncate: 0x10, exclusive: 0x20 } as const;

interface Waiting {
  id: number;
  bytes: number;
  work: (disk: SandboxDisk) => Promise<void>;
}

/** The SFTP subsystem: requests are done one after another, in the order in which they came. */
export class SftpChannel {
  readonly closed: Promise<void>;
  readonly #deps: SessionDeps;
  readonly #sftp: SFTPWrapper;
  readonly #signal: AbortSignal;
  readonly #handles = new SftpHandles();
  readonly #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #isWorking = false;
  #disk: Promise<SandboxDisk> | undefined;
  #isClosed = false;
  #left: () => void = () => undefined;

  constructor(deps: SessionDeps, sftp: SFTPWrapper, signal: AbortSignal) {
    this.#deps = deps;
    this.#sftp = sftp;
    this.#signal = signal;
    this.closed = new Promise((resolve) => {
      this.#left = resolve;
    });
    for (const event of ["end", "close", "error"]) sftp.on(event, () => this.#close());
    signal.addEventListener("abort", () => this.#close(), { once: true });
    void deps.ssh.tell(deps.key, "ssh.sftp", {});
    this.#listenForFiles();
    this.#listenForPaths();
  }

  #listenForFiles(): void {
    const sftp = this.#sftp;
    sftp.on("OPEN", (id, path, flags, attributes) =>
      this.#ask(id, async (disk) => sftp.handle(id, await this.#open(disk, path, flags, attributes))),
    );
    sftp.on("READ", (id, handle, offset, length) =>
      this.#ask(id, async () => {
        await this.#repliesTaken();
        const { reader } = this.#handles.file(handle);
        if (reader === undefined) throw new AidoError("FILE_NOT_PERMITTED", "The file is open for writing");
        const data = await reader.read(toOffset(offset), Math.min(length, MAX_READ_BYTES));
        if (data.length > 0 || length === 0) sftp.data(id, data);
        else this.#status(id, "EOF");
      }),
    );
    sftp.on("WRITE", (id, handle, offset, data) =>
      this.#ask(
        id,
        async () => {
          await this.#writer(handle).write(toOffset(offset), data);
          this.#status(id, "OK");
        },
        data.length,
      ),
    );
    sftp.on("FSTAT", (id, handle) =>
      this.#ask(id, async (disk) => {
        const { path, writer } = this.#handles.file(handle);
        await writer?.flush();
        sftp.attrs(id, toWireAttributes(await disk.stat(path)));
      }),
    );
    sftp.on("FSETSTAT", (id, handle, attributes) =>
      this.#ask(id, async (disk) => {
        const { path, writer } = this.#handles.file(handle);
        const { size, ...rest } = fromWireAttributes(attributes);
        if (writer === undefined) {
          await disk.setAttributes(path, { size, ...rest });
        } else {
          if (size !== undefined) await writer.truncate(toOffset(size));
          writer.setLater(rest);
        }
        this.#status(id, "OK");
      }),
    );
    sftp.on("CLOSE", (id, handle) =>
      this.#ask(id, async () => {
        await this.#handles.close(handle);
        this.#status(id, "OK");
      }),
    );
    sftp.on("READDIR", (id, handle) =>
      this.#ask(id, async () => {
        await this.#repliesTaken();
        const entries = await this.#handles.names(handle, NAMES_PER_REPLY);
        if (entries.length === 0) this.#status(id, "EOF");
        else
          sftp.name(
            id,
            entries.map((record) => toFileEntry(record, record.path)),
          );
      }),
    );
  }

  #listenForPaths(): void {
    const sftp = this.#sftp;
    const done = (id: number, work: (disk: SandboxDisk) => Promise<void>) =>
      this.#ask(id, async (disk) => {
        await work(disk);
        this.#status(id, "OK");
      });
    sftp.on("OPENDIR", (id, path) =>
      this.#ask(id, async (disk) => {
        if ((await disk.stat(path)).type !== "directory") {
          throw new AidoError("INVALID_PATH", `${path} is no directory`);
        }
        sftp.handle(id, this.#handles.addDirectory(disk.list(path)));
      }),
    );
    sftp.on("STAT", (id, path) =>
      this.#ask(id, async (disk) => sftp.attrs(id, toWireAttributes(await disk.stat(path)))),
    );
    sftp.on("LSTAT", (id, path) =>
      this.#ask(id, async (disk) => sftp.attrs(id, toWireAttributes(await disk.lstat(path)))),
    );
    sftp.on("REALPATH", (id, path) =>
      this.#ask(id, async (disk) => this.#name(id, await disk.realpath(path))),
    );
    sftp.on("READLINK", (id, path) =>
      this.#ask(id, async (disk) => this.#name(id, await disk.readlink(path))),
    );
    sftp.on("SETSTAT", (id, path, attributes) =>
      done(id, (disk) => disk.setAttributes(path, fromWireAttributes(attributes))),
    );
    sftp.on("MKDIR", (id, path, attributes) =>
      done(id, (disk) => disk.mkdir(path, (fromWireAttributes(attributes).mode ?? 0o777) & ~UMASK)),
    );
    sftp.on("REMOVE", (id, path) => done(id, (disk) => disk.remove(path)));
    sftp.on("RMDIR", (id, path) => done(id, (disk) => disk.rmdir(path)));
    sftp.on("RENAME", (id, from, to) => done(id, (disk) => disk.rename(from, to, { replace: false })));
    // The library tells the link first, whichever way the client has sent it.
    sftp.on("SYMLINK", (id, path, target) => done(id, (disk) => disk.symlink(target, path)));
  }

  async #open(
    disk: SandboxDisk,
    path: string,
    flags: number,
    attributes: Partial<WireAttributes>,
  ): Promise<Buffer> {
    this.#handles.checkRoom();
    const has = (name: keyof typeof OPEN) => (flags & OPEN[name]) !== 0;
    const file: OpenFile = { path };
    if (has("write") || has("append")) {
      const { mode } = fromWireAttributes(attributes);
      file.writer = await disk.openWrite(path, {
        create: has("create"),
        exclusive: has("exclusive"),
        truncate: has("truncate"),
        append: has("append"),
        mode: mode === undefined ? undefined : mode & ~UMASK,
      });
    } else {
      file.reader = await disk.openRead(path);
    }
    return this.#handles.addFile(file);
  }

  #writer(handle: Buffer) {
    const { writer } = this.#handles.file(handle);
    if (writer === undefined) throw new AidoError("FILE_NOT_PERMITTED", "The file is open for reading");
    return writer;
  }

  #ask(id: number, work: Waiting["work"], bytes = 0): void {
    this.#waiting.push({ id, work, bytes });
    this.#waitingBytes += bytes;
    if (this.#waiting.length > MAX_WAITING || this.#waitingBytes > MAX_WAITING_BYTES) this.#deps.overrun();
    else if (!this.#isWorking) void this.#work();
  }

  async #work(): Promise<void> {
    this.#isWorking = true;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      this.#waitingBytes -= next.bytes;
      if (this.#isClosed) continue;
      try {
        this.#disk ??= this.#deps.ssh.openDisk(this.#deps.key, this.#signal);
        await next.work(await this.#disk);
      } catch (thrown) {
        if (this.#isClosed) continue;
        this.#refuse(next.id, toAidoError(thrown));
      }
    }
    this.#isWorking = false;
  }

  /** Waits while the client does not take what it has asked for. */
  async #repliesTaken(): Promise<void> {
    await this.#deps.outflow.ready();
    const { _buffer: unsent = [] } = this.#sftp as unknown as { _buffer?: readonly unknown[] };
    while (unsent.length > MAX_REPLIES && !this.#isClosed) {
      await new Promise((resolve) => setTimeout(resolve, WINDOW_POLL_MS));
    }
  }

  #name(id: number, path: string): void {
    const attrs = { mode: 0, uid: 0, gid: 0, size: 0, atime: 0, mtime: 0 };
    this.#sftp.name(id, [{ filename: path, longname: path, attrs }]);
  }

  #refuse(id: number, error: AidoError): void {
    if (error.code === "FILE_NOT_FOUND") this.#status(id, "NO_SUCH_FILE");
    else if (error.code === "FILE_NOT_PERMITTED") this.#status(id, "PERMISSION_DENIED");
    else this.#status(id, "FAILURE", error.kind === "internal" ? "aido could not do this" : error.message);
  }

  #status(
    id: number,
    name: "OK" | "EOF" | "NO_SUCH_FILE" | "PERMISSION_DENIED" | "FAILURE",
    text = "",
  ): void {
    this.#sftp.status(id, this.#deps.library.utils.sftp.STATUS_CODE[name], text);
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#waiting.length = 0;
    this.#waitingBytes = 0;
    this.#handles.abort();
    sayGoodbye(this.#sftp);
    this.#sftp.end();
    this.#left();
  }
}

/** A client takes a session that ends without an exit status for one that failed; the library's SFTP has no way to send it. */
function sayGoodbye(sftp: SFTPWrapper): void {
  const { _protocol: protocol, outgoing } = sftp as unknown as {
    _protocol?: { exitStatus?(channel: number, status: number): void };
    outgoing?: { id: number; state: string };
  };
  if (outgoing?.state === "open") protocol?.exitStatus?.(outgoing.id, 0);
}

function toOffset(value: number): number {
  if (Number.isSafeInteger(Number(value)) && value >= 0) return Number(value);
  throw new AidoError("VALIDATION_ERROR", "The offset is out of range");
}
