import { AidoError } from "@aido/sdk/protocol";
import type { StandardErrorCode } from "./message.ts";

/** `answer` is the code the adapter reports when it was sent such a message. */
export function messageError(
  field: string,
  problem: string,
  answer: StandardErrorCode = "INVALID_INPUT",
): AidoError {
  return new AidoError("SWARM_MESSAGE_INVALID", `Invalid swarm message - ${field} ${problem}`, {
    hint: "Messages are JSON objects of one line each; docs/guides/swarm.md has their fields.",
    details: { field, answer },
  });
}
