const MOST_COMPONENTS = 256;
const MOST_COMPONENT_BYTES = 255;

/** The components of a name that stays where it is put; undefined for one that could lead elsewhere. */
export function safeComponents(name: string): readonly string[] | undefined {
  if (name.startsWith("/") || name.includes("\0")) return undefined;
  const parts = name.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.length > MOST_COMPONENTS) return undefined;
  const bad = parts.some((part) => part === ".." || Buffer.byteLength(part) > MOST_COMPONENT_BYTES);
  return bad ? undefined : parts;
}

/**
 * Whether a symbolic link, `depth` directories below the root, can only lead to places below the root.
 * `..` may stand at the beginning only: after a component that is itself a link it would climb from wherever
 * that link leads.
 */
export function isInnerTarget(target: string, depth: number): boolean {
  if (target === "" || target.startsWith("/") || target.includes("\0")) return false;
  const parts = target.split("/").filter((part) => part !== "" && part !== ".");
  const climbs = parts.findIndex((part) => part !== "..");
  const up = climbs < 0 ? parts.length : climbs;
  return up <= depth && !parts.slice(up).includes("..");
}
