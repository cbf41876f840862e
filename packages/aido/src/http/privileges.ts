import { AidoError, type Network, type Permissions } from "@aido/sdk/protocol";
import type { Principal } from "./auth/principal.ts";

export type AwsUsers = "admin" | "write" | "nobody";

interface Asked {
  privileged?: boolean | undefined;
  network?: Network | undefined;
  permissions?: Permissions | undefined;
}

/**
 * What takes walls of a sandbox away is for administrators: a key for running code must not reach the host with it. Who
 * may have AWS permissions is the operator's choice.
 */
export function refusePrivileges(principal: Principal, asked: Asked, awsUsers: AwsUsers = "admin"): void {
  if (asked.permissions?.aws !== undefined && awsUsers === "nobody") {
    throw new AidoError("FORBIDDEN", "This server gives no AWS permissions", {
      hint: "Its operator allows them with the setting aws.users.",
    });
  }
  if (principal.scopes.includes("admin")) return;
  const what = privilegeIn(asked, awsUsers);
  if (what === undefined) return;
  throw new AidoError("FORBIDDEN", `This key may not ask for ${what}`, {
    hint: "It needs the scope admin; `aido key create --scope admin` makes such a key.",
  });
}

function privilegeIn({ privileged, network, permissions }: Asked, awsUsers: AwsUsers): string | undefined {
  if (privileged === true) return "a privileged sandbox";
  if (network === "host") return "the host's network";
  return permissions?.aws !== undefined && awsUsers === "admin" ? "AWS permissions" : undefined;
}
