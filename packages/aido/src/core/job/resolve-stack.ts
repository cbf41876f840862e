import { AidoError, isAidoError } from "@aido/sdk/protocol";
import { resolveImage } from "../sandbox/resolve-image.ts";

/** A stack is a language that aido knows an image for. */
export function resolveStack(stack: string): string {
  try {
    return resolveImage(`@ai-sandbox/${stack.trim().toLowerCase()}`);
  } catch (thrown) {
    if (!isAidoError(thrown, "IMAGE_NOT_FOUND")) throw thrown;
    throw new AidoError(
      "VALIDATION_ERROR",
      `There is no image for the stack ${JSON.stringify(stack.slice(0, 64))}`,
      {
        hint: thrown.hint,
        details: { field: "stack" },
        cause: thrown,
      },
    );
  }
}
