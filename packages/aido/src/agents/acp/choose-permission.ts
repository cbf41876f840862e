import type { PermissionOption, RequestPermissionResponse } from "@agentclientprotocol/sdk";

const WANTED = {
  allow: ["allow_once", "allow_always"],
  deny: ["reject_once", "reject_always"],
  cancel: [],
} as const;

/** The narrowest answer of the wanted kind that the agent offers; none of them means that it is not done. */
export function choosePermission(
  options: readonly PermissionOption[],
  policy: keyof typeof WANTED,
): RequestPermissionResponse {
  for (const kind of WANTED[policy]) {
    const option = options.find((one) => one.kind === kind);
    if (option !== undefined) return { outcome: { outcome: "selected", optionId: option.optionId } };
  }
  return { outcome: { outcome: "cancelled" } };
}
