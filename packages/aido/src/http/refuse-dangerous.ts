import { AidoError, type Network } from "@aido/sdk/protocol";
import type { Principal } from "./auth/principal.ts";

/** What gives a sandbox the host's network or privileges gives it the machine: only administrators may. */
export function refuseDangerous(
  principal: Principal,
  wanted: {
    network?: Network | undefined;
    hostNetwork?: boolean | undefined;
    privileged?: boolean | undefined;
  },
): void {
  const isDangerous = wanted.network === "host" || wanted.hostNetwork === true || wanted.privileged === true;
  if (!isDangerous || principal.scopes.includes("admin")) return;
  throw new AidoError("FORBIDDEN", "This key may not give a sandbox the host's network or full privileges", {
    hint: "It needs the scope admin: `aido key create <name> --scope admin`.",
  });
}
