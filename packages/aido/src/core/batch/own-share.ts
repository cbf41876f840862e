import { AidoError } from "@aido/sdk/protocol";

const ADDRESS = /^0x[0-9a-fA-F]{40}$/;

/**
 * How many of `count` this machine makes when several operators share them. Nobody named, or no address of our own: all
 * of them. `all` means that many on each; otherwise they are dealt out in turn, for an operator does not know the others' weights.
 */
export function ownShare(
  count: number,
  request: { operators: readonly string[]; distribution: string },
  self: string | undefined,
): number {
  const operators = request.operators.map((address) => address.trim().toLowerCase());
  const bad = operators.find((address) => !ADDRESS.test(address));
  if (bad !== undefined) {
    throw invalid(`operators: ${JSON.stringify(bad.slice(0, 64))} is no address`, "Write 0x and 40 digits.");
  }
  if (new Set(operators).size !== operators.length) throw invalid("operators: an address is named twice");
  if (operators.length === 0 || self === undefined) return count;
  const own = operators.indexOf(self.toLowerCase());
  if (own < 0) {
    throw invalid(
      "This operator is not among those that were asked",
      "Name its address too, or leave `operators` out.",
    );
  }
  if (request.distribution === "all") return count;
  return Math.floor(count / operators.length) + (own < count % operators.length ? 1 : 0);
}

function invalid(message: string, hint?: string): AidoError {
  return new AidoError("VALIDATION_ERROR", message, { hint, details: { field: "operators" } });
}
