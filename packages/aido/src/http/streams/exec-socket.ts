import type { Aido } from "@aido/sdk";
import { AidoError, type ExecInfo, type OutputRange } from "@aido/sdk/protocol";
import { resizeBody, signalBody } from "@aido/sdk/schemas";
import type { RawData, WebSocket } from "ws";
import { z } from "zod";
import { errorBody, wireError } from "../error-reply.ts";
import { execEvents } from "./exec-events.ts";
import { keepAlive } from "./keep-alive.ts";

const clientMessage = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("stdin"),
    data: z.string(),
    encoding: z.enum(["utf8", "base64"]).optional(),
  }),
  z.strictObject({ type: z.literal("closeStdin") }),
  resizeBody.extend({ type: z.literal("resize") }),
  signalBody.extend({ type: z.literal("signal") }),
]);

/** Pause taking input from a client whose command does not read. */
const MAX_PENDING_MESSAGES = 64;

/**
 * One viewer of one command. Several may watch the same command, each from its own offset; leaving does not end it.
 * Text messages are JSON, binary messages from the client are standard input.
 */
export async function serveExecSocket(
  aido: Aido,
  exec: ExecInfo,
  socket: WebSocket,
  range: OutputRange,
): Promise<void> {
  const gone = new AbortController();
  socket.on("close", () => gone.abort());
  socket.on("error", () => gone.abort());
  const stopPinging = keepAlive(socket);
  const input = inputQueue(aido, exec, socket);
  socket.on("message", input);
  try {
    for await (const { event, data } of execEvents(aido, exec, range, gone.signal)) {
      await send(socket, { type: event, ...(data as object) });
    }
    socket.close(1000);
  } catch (thrown) {
    if (!gone.signal.aborted) {
      await send(socket, { type: "error", ...errorBody(wireError(thrown), exec.id) });
      socket.close(1011);
    }
  } finally {
    stopPinging();
  }
}

/** Messages are applied one after the other: bytes of standard input keep their order. */
function inputQueue(
  aido: Aido,
  exec: ExecInfo,
  socket: WebSocket,
): (data: RawData, isBinary: boolean) => void {
  let tail = Promise.resolve();
  let pending = 0;
  return (data, isBinary) => {
    pending += 1;
    if (pending >= MAX_PENDING_MESSAGES) socket.pause();
    tail = tail
      .then(() => apply(aido, exec, data, isBinary))
      .catch((thrown: unknown) => send(socket, { type: "error", ...errorBody(wireError(thrown), exec.id) }))
      .finally(() => {
        pending -= 1;
        if (pending < MAX_PENDING_MESSAGES && socket.isPaused) socket.resume();
      });
  };
}

async function apply(aido: Aido, exec: ExecInfo, data: RawData, isBinary: boolean): Promise<void> {
  const bytes = toBuffer(data);
  if (isBinary) return aido.execs.writeStdin(exec.sandboxId, exec.id, bytes);
  const parsed = clientMessage.safeParse(parse(bytes));
  if (!parsed.success)
    throw new AidoError("VALIDATION_ERROR", `That message is not known: ${parsed.error.message}`);
  const message = parsed.data;
  switch (message.type) {
    case "stdin":
      return aido.execs.writeStdin(
        exec.sandboxId,
        exec.id,
        Buffer.from(message.data, message.encoding ?? "utf8"),
      );
    case "closeStdin":
      return aido.execs.closeStdin(exec.sandboxId, exec.id);
    case "resize":
      return aido.execs.resize(exec.sandboxId, exec.id, { rows: message.rows, cols: message.cols });
    case "signal":
      return aido.execs.kill(exec.sandboxId, exec.id, {
        ...(message.signal === undefined ? {} : { signal: message.signal }),
        ...(message.graceMs === undefined ? {} : { graceMs: message.graceMs }),
      });
  }
}

/** Resolves when the bytes have left this process, so that a slow viewer slows its own reading, not memory. */
function send(socket: WebSocket, message: object): Promise<void> {
  return new Promise((resolve) => {
    if (socket.readyState !== socket.OPEN) resolve();
    else socket.send(JSON.stringify(message), () => resolve());
  });
}

function toBuffer(data: RawData): Buffer {
  if (Array.isArray(data)) return Buffer.concat(data);
  return Buffer.isBuffer(data) ? data : Buffer.from(data);
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    return undefined;
  }
}
