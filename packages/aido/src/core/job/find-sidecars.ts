import { AidoError } from "@aido/sdk/protocol";
import { findSidecar } from "./find-sidecar.ts";
import type { JobSandbox } from "./job-caller.ts";
import type { HandlerDeps, JobContext } from "./job-handler.ts";

/** Every sandbox of a batch, all tokens checked before anything is done. */
export async function findSidecars(
  deps: Pick<HandlerDeps, "tokens">,
  context: JobContext,
  { sidecarUrls, sidecarTokens }: { sidecarUrls: readonly string[]; sidecarTokens: readonly string[] },
): Promise<readonly JobSandbox[]> {
  if (sidecarUrls.length === 0) throw invalid("sidecarUrls", "sidecar_urls is empty");
  const areLeftOut = sidecarTokens.length === 0 && context.caller.isOperator;
  if (!areLeftOut && sidecarTokens.length !== sidecarUrls.length) {
    const message = `There are ${sidecarUrls.length} sidecar_urls and ${sidecarTokens.length} sidecar_tokens`;
    throw invalid("sidecarTokens", message);
  }
  const found: JobSandbox[] = [];
  for (const [index, sidecarUrl] of sidecarUrls.entries()) {
    found.push(await findSidecar(deps, context, { sidecarUrl, sidecarToken: sidecarTokens[index] ?? "" }));
  }
  return found;
}

function invalid(field: string, message: string): AidoError {
  return new AidoError("VALIDATION_ERROR", message, {
    hint: "Send one token for each address, in the same order.",
    details: { field },
  });
}
