import type { Aido, RunLogs } from "@aido/sdk";
import type { ServerEvent } from "./event-stream.ts";

/** A run's output as it is recorded. Bytes travel as base64: output need not be text. */
export async function* runEvents(
  aido: Aido,
  request: RunLogs,
  signal: AbortSignal,
): AsyncGenerator<ServerEvent> {
  for await (const { data, ...chunk } of aido.runs.logs(request, signal)) {
    yield { event: "output", data: { ...chunk, data: Buffer.from(data).toString("base64") } };
  }
  yield { event: "end", data: {} };
}
