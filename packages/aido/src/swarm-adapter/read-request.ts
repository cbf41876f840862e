import { constants } from "node:fs";
import { open } from "node:fs/promises";
import type { Clock } from "../core/clock.ts";
import { withTimeLimit } from "../core/supervisor/time-limit.ts";
import { MAX_MESSAGE_BYTES, type TaskRequest } from "../core/swarm/messages/message.ts";
import { messageError } from "../core/swarm/messages/message-error.ts";
import { parseMessage } from "../core/swarm/messages/parse-message.ts";

const WAIT_MS = 120_000;
const NEWLINE = 0x0a;

export interface RequestSource {
  /** A file instead of standard input. */
  readonly input: string | undefined;
  readonly stdin: AsyncIterable<Uint8Array>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** The one task-request, by all rules. What comes behind its line is not read. */
export async function readRequest({ input, stdin, clock, signal }: RequestSource): Promise<TaskRequest> {
  const limit = { clock, limitMs: WAIT_MS, what: "Waiting for the task-request", signal };
  const line = await withTimeLimit(limit, () => (input === undefined ? firstLine(stdin) : fileLine(input)));
  if (line.toString("utf8").trim() === "") throw messageError("(line)", "is empty");
  const message = parseMessage(line);
  if (message.type === "task-request") return message;
  throw messageError("type", `is ${message.type}, not task-request`);
}

async function firstLine(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    const end = chunk.indexOf(NEWLINE);
    const part = end < 0 ? chunk : chunk.subarray(0, end);
    bytes += part.byteLength;
    if (bytes > MAX_MESSAGE_BYTES) throw messageError("(line)", `has more than ${MAX_MESSAGE_BYTES} bytes`);
    parts.push(part);
    if (end >= 0) break;
  }
  return Buffer.concat(parts);
}

async function fileLine(path: string): Promise<Buffer> {
  const flags = constants.O_RDONLY | constants.O_NONBLOCK;
  const handle = await open(path, flags).catch((thrown: NodeJS.ErrnoException) => {
    throw messageError("(file)", `cannot be read: ${thrown.code ?? thrown.message}`);
  });
  try {
    if (!(await handle.stat()).isFile()) throw messageError("(file)", "is not a file");
    const buffer = Buffer.alloc(MAX_MESSAGE_BYTES + 1);
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, 0);
    return await firstLine(asChunks(buffer.subarray(0, bytesRead)));
  } finally {
    await handle.close();
  }
}

async function* asChunks(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
