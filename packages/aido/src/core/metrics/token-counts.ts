import type { TaskResult } from "@aido/sdk/protocol";
import type { Counts } from "./counters.ts";

/** What agents have read and written, where a result says so. */
export function tokenCounts(result: object): Counts {
  const { inputTokens, outputTokens } = result as Partial<TaskResult>;
  return { total_input_tokens: inputTokens ?? 0, total_output_tokens: outputTokens ?? 0 };
}
