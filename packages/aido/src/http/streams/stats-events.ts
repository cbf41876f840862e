import { setTimeout as sleep } from "node:timers/promises";
import type { Aido } from "@aido/sdk";
import { isAidoError } from "@aido/sdk/protocol";
import { statsToWire } from "../to-wire.ts";
import type { ServerEvent } from "./event-stream.ts";

const EVERY_MS = 1000;

/** The first reading at once, then one a second until the sandbox runs no more. */
export async function* statsEvents(
  aido: Aido,
  sandboxId: string,
  first: object,
  signal: AbortSignal,
): AsyncGenerator<ServerEvent> {
  yield { event: "stats", data: first };
  for (;;) {
    await sleep(EVERY_MS, undefined, { signal });
    try {
      yield { event: "stats", data: statsToWire(await aido.sandboxes.stats(sandboxId)) };
    } catch (thrown) {
      if (!hasEnded(thrown)) throw thrown;
      yield { event: "end", data: { containerId: sandboxId } };
      return;
    }
  }
}

function hasEnded(thrown: unknown): boolean {
  const codes = [
    "CONTAINER_NOT_RUNNING",
    "CONTAINER_LOST",
    "CONTAINER_NOT_FOUND",
    "CONTAINER_EXPIRED",
  ] as const;
  return codes.some((code) => isAidoError(thrown, code));
}
