import { AidoError } from "../protocol/errors.ts";
import { isLost, pause } from "./lost-server.ts";
import { serverEvents } from "./server-events.ts";
import { errorText, number, object, text } from "./sidecar-answers.ts";
import type { SidecarRequests } from "./sidecar-request.ts";

export type TerminalEvent =
  /** `offset` is that of its first byte. */
  | { type: "output"; data: string; offset: number }
  | { type: "exit"; code: number | undefined; signal: string | undefined };

const RETRY_DELAY_MS = 250;
const RETRY_FOR_MS = 30_000;

/** A stream that breaks off is asked for again from where it was. */
export async function* terminalEvents(
  requests: SidecarRequests,
  path: string,
  options: { offset?: number | undefined; signal?: AbortSignal | undefined },
): AsyncGenerator<TerminalEvent, void, undefined> {
  const { signal } = options;
  const encoder = new TextEncoder();
  let next = options.offset ?? 0;
  let heardAt = Date.now();
  for (;;) {
    try {
      const response = await requests.open(`${path}/stream?offset=${next}`, { signal });
      for await (const { event, data } of serverEvents(response, requests.url, signal)) {
        heardAt = Date.now();
        const fields = object(data);
        if (event === "error") throw failure(errorText(fields) ?? errorText(fields["error"]));
        if (event === "exit") {
          yield { type: "exit", code: toCode(fields["code"]), signal: text(fields["signal"]) || undefined };
          return;
        }
        if (event !== "output") continue;
        const output = text(fields["data"]);
        const offset = "offset" in fields ? number(fields["offset"]) : next;
        // A byte that is no text arrives as three, so the sender's own word about where it is comes first.
        next = "end" in fields ? number(fields["end"]) : offset + encoder.encode(output).length;
        yield { type: "output", data: output, offset };
      }
    } catch (thrown) {
      if (signal?.aborted === true) throw signal.reason;
      if (!isLost(thrown) || Date.now() - heardAt > RETRY_FOR_MS) throw thrown;
    }
    if (Date.now() - heardAt > RETRY_FOR_MS) throw failure("it says nothing");
    await pause(RETRY_DELAY_MS, signal);
  }
}

function toCode(code: unknown): number | undefined {
  return typeof code === "number" ? code : undefined;
}

function failure(why: string | undefined): AidoError {
  return new AidoError("CONTAINER_LOST", `The terminal's stream ended: ${why ?? "no reason was given"}`);
}
