import { toAidoError } from "@aido/sdk/protocol";
import type { Clock } from "../core/clock.ts";
import { readRequest } from "./read-request.ts";
import { Reporter } from "./report/reporter.ts";
import { Scrubber } from "./report/scrubber.ts";

export interface AdapterIo {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly input: string | undefined;
  readonly stdin: AsyncIterable<Uint8Array>;
  readonly write: (line: string) => Promise<void>;
  readonly log: (line: string) => void;
  readonly clock: Clock;
  /** Aborted when the worker shall end. */
  readonly signal: AbortSignal;
}

/** From the request to the last message; gives the exit code. */
export async function runAdapter({ env, clock, signal, ...io }: AdapterIo): Promise<number> {
  const reporter = new Reporter({ write: io.write, clock, scrubber: new Scrubber(), env });
  try {
    reporter.identify(await readRequest({ ...io, clock, signal }));
    await reporter.fail("UNKNOWN_ERROR", "This adapter cannot do stories yet");
  } catch (thrown) {
    const { message, details } = toAidoError(thrown);
    await reporter.fail(String(details["answer"] ?? "UNKNOWN_ERROR"), message);
  }
  return 1;
}
