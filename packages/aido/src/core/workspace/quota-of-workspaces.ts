import { AidoError } from "@aido/sdk/protocol";

export function quotaOfWorkspaces(most: number): AidoError {
  return new AidoError("QUOTA_EXCEEDED", `You have ${most} workspaces, which is all you may have`, {
    hint: "Remove one with `aido workspace rm`, or ask for a higher quota.",
    details: { limit: most },
  });
}
