import { AidoError } from "@aido/sdk/protocol";

type Json = Readonly<Record<string, unknown>>;

const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const OWN_LABEL_PREFIX = "dev.aido.";
export const SNAPSHOT_DESTINATION = "snapshot_destination";

/** Texts, numbers and booleans are variables; objects, arrays and null are left out. */
export function toEnv(json: Json): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(json)) {
    if (!["string", "number", "boolean"].includes(typeof value)) continue;
    if (!ENV_NAME.test(name)) {
      throw new AidoError("VALIDATION_ERROR", `env_json: ${JSON.stringify(name)} is not a variable's name`, {
        hint: 'Names are letters, digits and "_", not first a digit.',
        details: { field: "envJson" },
      });
    }
    define(env, name, String(value));
  }
  return env;
}

/** Texts are labels; everything else is left out. */
export function toLabels(json: Json): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [name, value] of Object.entries(json)) {
    if (typeof value !== "string" || name === SNAPSHOT_DESTINATION) continue;
    if (name.startsWith(OWN_LABEL_PREFIX)) {
      throw new AidoError("VALIDATION_ERROR", `metadata_json: the label ${name} is reserved`, {
        hint: `Labels that begin with ${OWN_LABEL_PREFIX} are aido's own.`,
        details: { field: "metadataJson" },
      });
    }
    define(labels, name, value);
  }
  return labels;
}

export function toSnapshotDestination(json: Json): string | undefined {
  const destination = json[SNAPSHOT_DESTINATION];
  return typeof destination === "string" && destination.trim() !== "" ? destination.trim() : undefined;
}

/** Also a name such as `__proto__` is only a name. */
function define(target: Record<string, string>, name: string, value: string): void {
  Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true });
}
