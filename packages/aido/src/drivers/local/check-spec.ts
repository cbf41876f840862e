import { posix } from "node:path";
import { AidoError } from "@aido/sdk/protocol";
import type { ContainerSpec } from "../../core/driver/driver.ts";

/** Directories that the driver fills itself. */
const TAKEN = [
  "/usr",
  "/bin",
  "/sbin",
  "/lib",
  "/lib32",
  "/lib64",
  "/libx32",
  "/etc",
  "/proc",
  "/dev",
  "/.aido",
];

/** Refuses what the local driver cannot give, before anything is made. */
export function checkSpec(spec: ContainerSpec): void {
  if (spec.isolation !== "container") {
    throw new AidoError("ISOLATION_UNAVAILABLE", `The local driver has no isolation ${spec.isolation}`, {
      hint: "`aido doctor` says what this machine can do.",
    });
  }
  if (spec.privileged) throw unsupported("privileged sandboxes");
  if (spec.network === "bridge" || spec.network === "isolated") throw unsupported(`network ${spec.network}`);
  const targets = [...new Set([spec.workdir, ...spec.mounts.map((mount) => mount.target)])];
  for (const target of targets) checkTarget(target);
  const nested = targets.find((inner) =>
    targets.some((outer) => inner !== outer && inner.startsWith(`${outer}/`)),
  );
  // The mount point would lie in a directory that the sandbox writes to, and it could put a link there.
  if (nested !== undefined) throw unsupported(`a mount inside another one (${nested})`);
}

function checkTarget(target: string): void {
  const isPlain = target.startsWith("/") && posix.normalize(target) === target && !target.endsWith("/");
  if (isPlain && !TAKEN.some((taken) => target === taken || target.startsWith(`${taken}/`))) return;
  throw new AidoError("INVALID_PATH", `The local driver cannot use ${target} as a sandbox directory`, {
    hint: "Name an absolute path outside the system directories, such as /work.",
    details: { path: target },
  });
}

function unsupported(what: string): AidoError {
  return new AidoError("UNSUPPORTED", `The local driver cannot give ${what}`, {
    hint: "Use the Docker driver.",
  });
}
