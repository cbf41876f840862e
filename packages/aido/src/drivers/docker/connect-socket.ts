import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { AidoError } from "@aido/sdk/protocol";

/** Linux's O_PATH, which Node does not name: a handle to the file itself, without opening it. */
const O_PATH = 0o10000000;

/**
 * Connects to a socket that may have been replaced by hostile code: a link is not followed, anything but a socket is
 * refused, and what is connected to is what was checked. The detour also lifts the 108-byte limit on socket paths.
 */
export async function connectSocket(path: string, signal?: AbortSignal): Promise<Socket> {
  signal?.throwIfAborted();
  const handle = await open(path, O_PATH | constants.O_NOFOLLOW);
  try {
    if (!(await handle.stat()).isSocket()) {
      throw new AidoError(
        "CONTAINER_LOST",
        "The sandbox's supervisor socket was replaced by something else",
        {
          // A problem that trying again does not mend.
          details: { path, problem: "not a socket" },
        },
      );
    }
    return await dial(handle, signal);
  } finally {
    await handle.close();
  }
}

function dial(handle: FileHandle, signal: AbortSignal | undefined): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path: `/proc/self/fd/${handle.fd}` });
    const settle = () => {
      signal?.removeEventListener("abort", cancel);
      socket.removeListener("error", fail);
    };
    const fail = (error: Error) => {
      settle();
      socket.destroy();
      reject(error);
    };
    const cancel = () => fail(signal?.reason);
    signal?.addEventListener("abort", cancel, { once: true });
    socket.once("error", fail);
    socket.once("connect", () => {
      // Who gets the socket sees that it is destroyed; an error before that must not end the process.
      socket.on("error", () => undefined);
      settle();
      resolve(socket);
    });
  });
}
