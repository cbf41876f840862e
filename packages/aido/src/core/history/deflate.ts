import { promisify } from "node:util";
import { deflateSync, deflate as deflateWithCallback } from "node:zlib";

/** Up to here it takes less than a millisecond, and less than handing it to a thread. */
const AT_ONCE_BYTES = 64 * 1024;
/** Each may have 64 MiB in memory twice, and takes one of libuv's four threads. */
const MOST_TOGETHER = 2;
const OPTIONS = { level: 1 };

const deflateInThread = promisify<Buffer, typeof OPTIONS, Buffer>(deflateWithCallback);
const waiting: (() => void)[] = [];
let together = 0;

/**
 * As git keeps objects, with the header that it may have. What is large is compressed beside the loop, of all workspaces
 * of this process few at a time.
 */
export function deflate(content: Buffer, header = Buffer.alloc(0)): Buffer | Promise<Buffer> {
  if (content.length > AT_ONCE_BYTES) return inTurn(content, header);
  return deflateSync(Buffer.concat([header, content]), OPTIONS);
}

async function inTurn(content: Buffer, header: Buffer): Promise<Buffer> {
  if (together >= MOST_TOGETHER) await new Promise<void>((resolve) => waiting.push(resolve));
  else together += 1;
  try {
    return await deflateInThread(Buffer.concat([header, content]), OPTIONS);
  } finally {
    const next = waiting.shift();
    // Whoever comes next takes this one's place.
    if (next === undefined) together -= 1;
    else next();
  }
}
