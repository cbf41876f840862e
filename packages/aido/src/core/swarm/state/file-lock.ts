import { spawn } from "node:child_process";
import { constants } from "node:fs";
import { type FileHandle, lstat, open } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { AidoError } from "@aido/sdk/protocol";

const SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** What flock ends with when the time was up; 1 is what it also says for other failures. */
const TIME_WAS_UP = 75;

export interface LockOptions {
  /** How messages name the file. */
  shown: string;
  waitMs: number;
  signal?: AbortSignal | undefined;
  /** Where `flock` is looked for. */
  searchPath?: string | undefined;
}

/**
 * An exclusive flock(2), which other tools' `flock` respects and waits for. Node cannot take one, but the lock belongs to the
 * open file and not to a process: the program takes it on a descriptor it inherits, ends, and the lock stays
 * until that descriptor is closed here. The kernel closes it when this process is killed.
 */
export class FileLock implements AsyncDisposable {
  readonly #handle: FileHandle;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  static async take(path: string, options: LockOptions): Promise<FileLock> {
    const end = performance.now() + options.waitMs;
    for (;;) {
      const handle = await openLockFile(path, options.shown);
      try {
        await runFlock(handle.fd, Math.max(0, end - performance.now()), options);
        if (await isAt(handle, path)) return new FileLock(handle);
      } catch (thrown) {
        await handle.close();
        throw thrown;
      }
      // Somebody removed the file while this process waited, and others lock the new one.
      await handle.close();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }
}

async function openLockFile(path: string, shown: string): Promise<FileHandle> {
  const { O_RDONLY, O_CREAT, O_NOFOLLOW, O_NONBLOCK } = constants;
  let handle: FileHandle;
  try {
    handle = await open(path, O_RDONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600);
  } catch (thrown) {
    const { code, message } = thrown as NodeJS.ErrnoException;
    if (code === "ELOOP") throw noFile(shown, thrown);
    throw new AidoError("INVALID_PATH", `Cannot open ${shown}: ${code ?? message}`, { cause: thrown });
  }
  if ((await handle.stat()).isFile()) return handle;
  await handle.close();
  throw noFile(shown);
}

function noFile(shown: string, cause?: unknown): AidoError {
  return new AidoError("INVALID_PATH", `${shown} is not a plain file; links are not followed`, {
    hint: "Remove it; it is made anew.",
    cause,
  });
}

async function isAt(handle: FileHandle, path: string): Promise<boolean> {
  const [held, named] = await Promise.all([handle.stat(), lstat(path).catch(() => undefined)]);
  return named !== undefined && named.ino === held.ino && named.dev === held.dev;
}

async function runFlock(fd: number, waitMs: number, options: LockOptions): Promise<void> {
  const wait = (waitMs / 1000).toFixed(3);
  const child = spawn("flock", ["-x", "-w", wait, "-E", String(TIME_WAS_UP), "3"], {
    stdio: ["ignore", "ignore", "pipe", fd],
    env: { PATH: options.searchPath ?? SEARCH_PATH, LC_ALL: "C" },
    ...(options.signal && { signal: options.signal }),
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once("error", (cause: NodeJS.ErrnoException) =>
      reject(cause.code === "ENOENT" ? noFlock(cause) : cause),
    );
    child.once("close", resolve);
  });
  const [code, complaint] = await Promise.all([ended, child.stderr === null ? "" : text(child.stderr)]);
  if (code === 0) return;
  if (code === TIME_WAS_UP) {
    throw new AidoError(
      "SWARM_STATE_BUSY",
      `Another process has held ${options.shown} for ${options.waitMs / 1000} s`,
      { hint: "Try again, or see who holds it with `fuser -v .aimi/.state.lock`." },
    );
  }
  const why = complaint.trim().slice(0, 300) || `it ended with ${code}`;
  throw new AidoError("RUNTIME_UNAVAILABLE", `flock failed: ${why}`, {
    hint: "aido needs the flock of util-linux: `apt-get install util-linux`.",
  });
}

function noFlock(cause: Error): AidoError {
  return new AidoError("RUNTIME_UNAVAILABLE", "There is no flock program on this machine", {
    hint: "Install util-linux, for example with `apt-get install util-linux`.",
    cause,
  });
}
