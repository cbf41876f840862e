import { AidoError } from "@aido/sdk/protocol";
import type { SandboxRecord } from "../store/store.ts";

/** A sandbox of another driver cannot be reached through this one. */
export function refuseForeign(record: SandboxRecord, using: string): void {
  const { id, driver, state } = record;
  if (driver === using || state === "deleted") return;
  const message = `Sandbox ${id} was made with the ${driver} driver; aido is using ${using}`;
  const hint = `Add \`--driver ${driver}\`.`;
  throw new AidoError("RUNTIME_UNAVAILABLE", message, { hint, details: { id, driver } });
}
