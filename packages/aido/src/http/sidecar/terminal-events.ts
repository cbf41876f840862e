import type { Aido } from "@aido/sdk";
import { errorBody, wireError } from "../error-reply.ts";
import { unfinished } from "../routes/exec-output.ts";
import type { ServerEvent } from "../streams/event-stream.ts";
import type { Terminal } from "./terminals.ts";

export interface TerminalRange {
  offset: number;
  encoding: "utf8" | "base64";
}

/**
 * What a terminal writes, then how it ended. An event's id is the offset after its bytes. Text is never cut within a
 * character: the first bytes of one wait for the rest.
 */
export async function* terminalEvents(
  aido: Aido,
  { exec }: Terminal,
  { offset, encoding }: TerminalRange,
  signal: AbortSignal,
): AsyncGenerator<ServerEvent> {
  const output = (bytes: Buffer, at: number): ServerEvent => ({
    event: "output",
    id: String(at + bytes.length),
    data: { data: bytes.toString(encoding), offset: at, end: at + bytes.length },
  });
  let next = offset;
  let held = Buffer.alloc(0);
  try {
    const range = { stdoutOffset: offset, follow: true };
    for await (const chunk of aido.execs.output(exec.sandboxId, exec.id, range, signal)) {
      if (chunk.stream !== "stdout") continue;
      const bytes = Buffer.concat([held, chunk.data]);
      const whole = encoding === "utf8" ? bytes.length - unfinished(bytes) : bytes.length;
      held = bytes.subarray(whole);
      if (whole > 0) yield output(bytes.subarray(0, whole), next);
      next += whole;
    }
    if (held.length > 0) yield output(held, next);
    const ended = await aido.execs.wait(exec.sandboxId, exec.id, signal);
    if (ended.status === "lost") yield failure("The sandbox ended before the terminal did");
    else yield { event: "exit", data: { code: ended.exitCode ?? null, signal: ended.signal ?? null } };
  } catch (thrown) {
    if (signal.aborted) return;
    yield failure(errorBody(wireError(thrown), "").error.message);
  }
}

function failure(message: string): ServerEvent {
  return { event: "error", data: { message } };
}
