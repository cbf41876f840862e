import type { CreateSandbox } from "@aido/sdk/protocol";
import type { DriverCapabilities } from "../driver/driver.ts";
import type { Logger } from "../logger.ts";

/** Disk use is watched by aido itself where the backend has no quota. */
const LIMITS = { cpus: "cpus", memoryBytes: "memory", pids: "pids" } as const;

/** Says once which of the limits that were asked for nothing holds. */
export class UnenforcedLimits {
  readonly #logger: Logger;
  readonly #said = new Set<string>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  tell(asked: NonNullable<CreateSandbox["limits"]>, { enforced }: DriverCapabilities): void {
    const loose = Object.entries(LIMITS)
      .filter(([key, name]) => asked[key as keyof typeof LIMITS] !== undefined && !enforced[name])
      .map(([, name]) => name)
      .filter((name) => !this.#said.has(name));
    if (loose.length === 0) return;
    for (const name of loose) this.#said.add(name);
    const which = loose.length === 1 ? `The limit ${loose[0]} is` : `The limits ${loose.join(", ")} are`;
    this.#logger.warn(
      { event: "sandbox.limits", limits: loose },
      `${which} not enforced on this machine for a sandbox as a whole: \`aido doctor\` says why`,
    );
  }
}
