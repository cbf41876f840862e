import { createHash } from "node:crypto";
import { createServer, type Server } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { AidoError } from "@aido/sdk/protocol";

const POLL_MS = 5;
const LIMIT_MS = 60_000;

/**
 * Runs one change to a sandbox at a time, on the whole machine. The lock is a name in the kernel's abstract socket
 * namespace: taken in one step, and free again the moment its holder is gone, kill -9 included.
 */
export async function withSandboxLock<Result>(
  directory: string,
  work: () => Promise<Result>,
  signal?: AbortSignal,
): Promise<Result> {
  const lock = await acquire(directory, signal);
  try {
    return await work();
  } finally {
    await new Promise((resolve) => lock.close(resolve));
  }
}

async function acquire(directory: string, signal: AbortSignal | undefined): Promise<Server> {
  const name = `\0aido-${createHash("sha256").update(directory).digest("hex")}`;
  const giveUpAt = Date.now() + LIMIT_MS;
  for (;;) {
    signal?.throwIfAborted();
    const lock = await listen(name);
    if (lock !== undefined) return lock;
    if (Date.now() > giveUpAt) {
      throw new AidoError(
        "DEADLINE_EXCEEDED",
        `Another aido process has been changing ${directory} for long`,
        {
          hint: "See `ps -ef | grep aido` for one that hangs.",
        },
      );
    }
    await sleep(POLL_MS, undefined, signal === undefined ? {} : { signal });
  }
}

function listen(name: string): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer((connection) => connection.destroy());
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRINUSE") resolve(undefined);
      else reject(error);
    });
    server.listen(name, () => {
      server.unref();
      resolve(server);
    });
  });
}
