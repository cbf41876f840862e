import type { SwarmContainer, SwarmState } from "../../../core/swarm/state/swarm-state.ts";
import type { CliContext } from "../../context.ts";
import { printResult } from "../../output/print.ts";
import { table } from "../../output/table.ts";

/** Every worker of the swarm, its branch and how far it is. */
export async function printWorkers(context: CliContext, state: SwarmState): Promise<void> {
  await printResult(context, state, () =>
    table<SwarmContainer>(
      state.containers,
      [
        { title: "CONTAINER", value: ({ containerName }) => containerName },
        {
          title: "TASK FILE",
          value: ({ taskFilePath }) => taskFilePath.replace(/^\.aimi\/tasks\//, ""),
          flexible: true,
        },
        { title: "BRANCH", value: ({ branchName }) => branchName, flexible: true },
        { title: "STATUS", value: ({ status }) => status },
        { title: "PROGRESS", value: ({ storyProgress: { completed, total } }) => `${completed}/${total}` },
        { title: "PR", value: ({ prUrl }) => prUrl ?? "-", flexible: true },
      ],
      context.stdout.columns,
    ),
  );
}
