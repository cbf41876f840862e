/** Ownership is by label: a container without the sandbox label and our scope is not ours, whatever its name. */
export const LABEL = {
  sandbox: "dev.aido.sandbox",
  scope: "dev.aido.scope",
  /** `uid:gid` that execs run as unless they say otherwise. */
  user: "dev.aido.user",
  /** `socket` or `exec`: how the host reaches the supervisor. */
  transport: "dev.aido.transport",
  /** `isolated` on a container that has a network of its own. */
  network: "dev.aido.network",
} as const;

export type Transport = "socket" | "exec";
