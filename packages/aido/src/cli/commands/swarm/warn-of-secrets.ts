import type { WorkerPlan } from "../../../core/swarm/records/worker-record.ts";
import type { CliContext } from "../../context.ts";
import { warn } from "../../output/print.ts";

/** What agents and pull requests need and is not set. A warning: an agent may have another way to its model. */
export async function warnOfSecrets(context: CliContext, plan: WorkerPlan): Promise<void> {
  const isSet = (name: string) => (context.env[name] ?? "") !== "" || plan.envNames.includes(name);
  if (plan.agent.agent === "claude" && !isSet("ANTHROPIC_API_KEY")) {
    await warn(context, "ANTHROPIC_API_KEY is not set; agents cannot work without it");
  }
  if (!isSet("GITHUB_TOKEN")) {
    await warn(context, "GITHUB_TOKEN is not set; workers can neither push to GitHub nor open pull requests");
  }
}
