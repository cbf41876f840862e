import { aggregate } from "../../batch/aggregate.ts";
import { tokenCounts } from "../../metrics/token-counts.ts";
import { askAgent } from "../ask-agent.ts";
import { findSidecars } from "../find-sidecars.ts";
import type { HandlerDeps, JobAgents, JobHandler } from "../job-handler.ts";

export function batchTask(deps: HandlerDeps & { agents: JobAgents }): JobHandler<"BATCH_TASK"> {
  return async (request, context) => {
    const aggregation = request.aggregation === "" ? "all" : request.aggregation;
    const sandboxes = await findSidecars(deps, context, request);
    const outcome = await deps.batches.run(
      {
        kind: "task",
        id: request.batchId,
        count: sandboxes.length,
        parallel: request.parallel,
        about: (position) => ({ sidecarUrl: request.sidecarUrls[position] ?? "" }),
        work: (position, signal) => askAgent(deps, sandboxes[position]?.id ?? "", request, { signal }),
        counts: tokenCounts,
        suffices: ({ success }) => aggregation === "first" && success,
        aggregate: (items) => aggregate(aggregation, items),
      },
      context.caller,
      context.signal,
    );
    const { batchId, items } = outcome;
    return { batchId, taskResults: items, ...(outcome.aggregate && { aggregate: outcome.aggregate }) };
  };
}
