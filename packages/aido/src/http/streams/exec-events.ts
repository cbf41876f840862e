import type { Aido } from "@aido/sdk";
import type { ExecInfo, OutputRange } from "@aido/sdk/protocol";
import { execOutcome, execToWire } from "../to-wire.ts";
import type { ServerEvent } from "./event-stream.ts";

/** Output as it is recorded, then how the command ended. Bytes travel as base64: output need not be text. */
export async function* execEvents(
  aido: Aido,
  info: ExecInfo,
  range: OutputRange,
  signal: AbortSignal,
): AsyncGenerator<ServerEvent> {
  const next = { stdout: range.stdoutOffset ?? 0, stderr: range.stderrOffset ?? 0 };
  const asked = { stdoutOffset: next.stdout, stderrOffset: next.stderr, follow: true };
  for await (const chunk of aido.execs.output(info.sandboxId, info.id, asked, signal)) {
    next[chunk.stream] = chunk.offset + chunk.data.length;
    yield {
      event: "output",
      id: `${next.stdout}:${next.stderr}`,
      data: {
        stream: chunk.stream,
        offset: chunk.offset,
        data: Buffer.from(chunk.data).toString("base64"),
      },
    };
  }
  const ended = await aido.execs.wait(info.sandboxId, info.id, signal);
  yield { event: "end", data: { ...execToWire(ended), ...execOutcome(ended) } };
}
