import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { connect, type Socket } from "node:net";

/** Missing in Node's constants. The number is the same on every processor aido runs on. */
const O_PATH = 0o10000000;

/**
 * Connects to exactly the socket found at `path`: no link is followed, nothing but a socket is opened, and what
 * happens to the name afterwards does not matter. It also lifts the limit of 107 bytes on a socket's path.
 */
export async function connectSocket(path: string, signal?: AbortSignal): Promise<Socket> {
  signal?.throwIfAborted();
  const handle = await open(path, O_PATH | constants.O_NOFOLLOW);
  try {
    if (!(await handle.stat()).isSocket()) throw new Error(`${path} is no socket`);
    return await connected(handle, signal);
  } finally {
    await handle.close();
  }
}

function connected(handle: FileHandle, signal: AbortSignal | undefined): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path: `/proc/self/fd/${handle.fd}` });
    const abort = () =>
      socket.destroy(signal?.reason instanceof Error ? signal.reason : new Error("aborted"));
    const settle = () => {
      signal?.removeEventListener("abort", abort);
      socket.removeListener("error", failed);
    };
    const failed = (error: Error) => {
      settle();
      reject(error);
    };
    signal?.addEventListener("abort", abort, { once: true });
    socket.once("error", failed);
    socket.once("connect", () => {
      // Who gets the socket sees that it is destroyed; an error before that must not end the process.
      socket.on("error", () => undefined);
      settle();
      resolve(socket);
    });
  });
}
