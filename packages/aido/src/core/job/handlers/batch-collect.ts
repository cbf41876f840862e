import type { HandlerDeps, JobHandler } from "../job-handler.ts";

export function batchCollect({ batches }: Pick<HandlerDeps, "batches">): JobHandler<"BATCH_COLLECT"> {
  return async ({ batchId }, { caller }) => {
    const { record, items } = await batches.collect(batchId, caller);
    const { id, kind, aggregate } = record;
    return { batchId: id, kind, results: items, ...(aggregate && { aggregate }) };
  };
}
