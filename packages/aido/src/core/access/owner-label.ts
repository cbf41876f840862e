/** Says whose a sandbox is. Set by the server, never by a caller. */
export const OWNER_LABEL = "dev.aido.owner";
/** Whoever uses aido in this process, or a server that asks for no key. */
export const ANONYMOUS = "anonymous";

export function ownerOf(labels: Readonly<Record<string, string>>): string {
  return labels[OWNER_LABEL] ?? ANONYMOUS;
}
