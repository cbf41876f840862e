import type { Aido } from "@aido/sdk";
import { AidoError, type ExecInfo, type OutputRange } from "@aido/sdk/protocol";
import { resizeBody, signalBody } from "@aido/sdk/schemas";
import type { WebSocket } from "ws";
import { z } from "zod";
import { errorBody, wireError } from "../error-reply.ts";
import { execEvents } from "./exec-events.ts";
import { keepAlive } from "./keep-alive.ts";
import { takeInput } from "./socket-input.ts";

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

export interface ExecSocketOptions {
  aido: Aido;
  exec: ExecInfo;
  /** Where its view of the output begins. */
  range: OutputRange;
  /** Around each signal that the client sends: admits it and keeps it on record. */
  onSignal: (send: () => Promise<void>) => Promise<void>;
  pingMs?: number | undefined;
}

/**
 * One viewer of one command. Several may watch the same command, each from its own offset; leaving does not end it.
 * Text messages are JSON, binary messages from the client are standard input.
 */
export async function serveExecSocket(socket: WebSocket, options: ExecSocketOptions): Promise<void> {
  const { aido, exec, range } = options;
  const gone = new AbortController();
  socket.on("close", () => gone.abort());
  socket.on("error", () => gone.abort());
  const stopPinging = keepAlive(socket, options.pingMs);
  const tell = (thrown: unknown) => send(socket, { type: "error", ...errorBody(wireError(thrown), exec.id) });
  takeInput(socket, {
    apply: (bytes, isBinary, signal) => apply(options, bytes, isBinary, signal),
    onFailure: tell,
  });
  try {
    for await (const { event, data } of execEvents(aido, exec, range, gone.signal)) {
      await send(socket, { type: event, ...(data as object) });
    }
    socket.close(1000);
  } catch (thrown) {
    if (!gone.signal.aborted) {
      await tell(thrown);
      socket.close(1011);
    }
  } finally {
    stopPinging();
  }
}

async function apply(
  { aido, exec: { sandboxId, id }, onSignal }: ExecSocketOptions,
  bytes: Buffer,
  isBinary: boolean,
  signal: AbortSignal,
): Promise<void> {
  if (isBinary) return aido.execs.writeStdin(sandboxId, id, bytes, signal);
  const parsed = clientMessage.safeParse(parse(bytes));
  if (!parsed.success)
    throw new AidoError("VALIDATION_ERROR", `That message is not known: ${parsed.error.message}`);
  const message = parsed.data;
  switch (message.type) {
    case "stdin": {
      const data = Buffer.from(message.data, message.encoding ?? "utf8");
      return aido.execs.writeStdin(sandboxId, id, data, signal);
    }
    case "closeStdin":
      return aido.execs.closeStdin(sandboxId, id, signal);
    case "resize":
      return aido.execs.resize(sandboxId, id, { rows: message.rows, cols: message.cols });
    case "signal":
      return onSignal(() =>
        aido.execs.kill(sandboxId, id, {
          ...(message.signal === undefined ? {} : { signal: message.signal }),
          ...(message.graceMs === undefined ? {} : { graceMs: message.graceMs }),
        }),
      );
  }
}

/** Resolves when the bytes have left this process, so that a slow viewer slows its own reading, not memory. */
function send(socket: WebSocket, message: object): Promise<void> {
  return new Promise((resolve) => {
    if (socket.readyState !== socket.OPEN) resolve();
    else socket.send(JSON.stringify(message), () => resolve());
  });
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    return undefined;
  }
}
