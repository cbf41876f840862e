import { AidoError } from "@aido/sdk/protocol";
import type { DriverCapabilities } from "../driver/driver.ts";
import type { SandboxRecord } from "../store/store.ts";

/** What the machine cannot give is refused before anything is made, never replaced by something weaker. */
export function checkCapabilities(
  record: Pick<SandboxRecord, "isolation" | "network" | "privileged" | "user" | "driver">,
  capabilities: DriverCapabilities,
): void {
  const details = { driver: record.driver, version: capabilities.version };
  if (!capabilities.isolations.includes(record.isolation)) {
    const reasons = capabilities.warnings.filter((warning) =>
      warning.toLowerCase().includes(record.isolation),
    );
    const why = reasons.length === 0 ? "its runtime is not set up on this machine" : reasons.join(" ");
    throw new AidoError(
      "ISOLATION_UNAVAILABLE",
      `Isolation ${record.isolation} is not available with the ${record.driver} driver: ${why}`,
      {
        hint: [capabilities.install?.[record.isolation], canGive(capabilities)].filter(Boolean).join(" "),
        details: { ...details, available: capabilities.isolations },
      },
    );
  }
  if (record.network !== "none" && capabilities.offline?.includes(record.isolation)) {
    throw new AidoError(
      "ISOLATION_UNAVAILABLE",
      `Isolation ${record.isolation} is not available with network ${record.network}: its runtime was set up without any network`,
      {
        hint: "Take --network=none out of the runtime's arguments in /etc/docker/daemon.json and restart Docker, or choose the network none.",
        details,
      },
    );
  }
  if (!capabilities.networks.includes(record.network)) {
    throw new AidoError(
      "UNSUPPORTED",
      `Network ${record.network} is not available with the ${record.driver} driver`,
      { hint: `Choose one of ${capabilities.networks.join(", ")}.`, details },
    );
  }
  if (record.privileged && !capabilities.privileged) {
    throw new AidoError("UNSUPPORTED", `The ${record.driver} driver cannot run a privileged sandbox`, {
      hint: "Leave the option out, or use the docker driver with `--driver docker`.",
      details,
    });
  }
  if (record.user !== undefined && !capabilities.users) {
    throw new AidoError("UNSUPPORTED", `The ${record.driver} driver runs commands as its own user only`, {
      hint: "Leave the user out.",
      details,
    });
  }
}

function canGive({ isolations }: DriverCapabilities): string {
  return `This machine can give ${isolations.join(", ") || "none"}; \`aido doctor\` says what is missing.`;
}
