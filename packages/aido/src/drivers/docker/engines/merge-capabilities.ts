import type { DriverCapabilities } from "../../../core/driver/driver.ts";

/** What engines can give together: a sandbox goes to one that can give what it asks for. */
export function mergeCapabilities(
  all: readonly (readonly [address: string, capabilities: DriverCapabilities])[],
  silent: readonly string[],
): DriverCapabilities {
  const each = all.map(([, capabilities]) => capabilities);
  const [first] = each;
  if (first === undefined) throw new Error("There are no engines");
  const every = (holds: (capabilities: DriverCapabilities) => boolean) => each.every(holds);
  return {
    ...first,
    version: all.map(([address, { version }]) => `${version} at ${address}`).join("; "),
    isolations: [...new Set(each.flatMap(({ isolations }) => isolations))],
    networks: [...new Set(each.flatMap(({ networks }) => networks))],
    enforced: {
      cpus: every(({ enforced }) => enforced.cpus),
      memory: every(({ enforced }) => enforced.memory),
      pids: every(({ enforced }) => enforced.pids),
      disk: every(({ enforced }) => enforced.disk),
    },
    warnings: [...silent, ...new Set(each.flatMap(({ warnings }) => warnings))],
  };
}
