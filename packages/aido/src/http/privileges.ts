import { AidoError, type Network } from "@aido/sdk/protocol";
import type { Principal } from "./auth/principal.ts";

/** What takes walls of a sandbox away is for administrators: a key for running code must not reach the host with it. */
export function refusePrivileges(
  principal: Principal,
  asked: { privileged?: boolean | undefined; network?: Network | undefined },
): void {
  if (principal.scopes.includes("admin")) return;
  const what =
    asked.privileged === true
      ? "a privileged sandbox"
      : asked.network === "host"
        ? "the host's network"
        : undefined;
  if (what === undefined) return;
  throw new AidoError("FORBIDDEN", `This key may not ask for ${what}`, {
    hint: "It needs the scope admin; `aido key create --scope admin` makes such a key.",
  });
}
