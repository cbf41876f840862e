import { AidoError } from "@aido/sdk/protocol";
import { ownShare } from "../../batch/own-share.ts";
import type { HandlerDeps, JobHandler } from "../job-handler.ts";
import { toCreateSandbox } from "../to-create-sandbox.ts";
import { createOne } from "./sandbox-create.ts";

export const MAX_BATCH_COUNT = 50;
/** What the sandboxes of a batch are found by: `aido ls --label batch=<id>`. */
const BATCH_LABEL = "batch";

export function batchCreate(deps: HandlerDeps): JobHandler<"BATCH_CREATE"> {
  return async (request, context) => {
    const { count, templateRequest: template, batchId: id } = request;
    if (count < 1 || count > MAX_BATCH_COUNT) {
      throw invalid("count", `A batch makes 1 to ${MAX_BATCH_COUNT} sandboxes, not ${count}`);
    }
    if (template.sidecarToken.trim() !== "") {
      throw invalid(
        "templateRequest.sidecarToken",
        "Sandboxes of a batch cannot share a token: leave it out",
      );
    }
    // What no sandbox can be made of is one error and not fifty.
    toCreateSandbox(template);
    const { batchId, items } = await deps.batches.run(
      {
        kind: "create",
        id,
        count: ownShare(count, request, deps.operatorAddress),
        parallel: true,
        work: (position, signal, batch) => {
          const name = template.name === "" ? "" : `${template.name}-${position + 1}`;
          return createOne(deps, { ...template, name }, { ...context, signal }, { [BATCH_LABEL]: batch });
        },
        // A token is shown to whoever asked, and not kept.
        kept: (result) => ({ ...result, token: "" }),
      },
      context.caller,
      context.signal,
    );
    return { batchId, sandboxes: items };
  };
}

function invalid(field: string, message: string): AidoError {
  return new AidoError("VALIDATION_ERROR", message, { details: { field } });
}
