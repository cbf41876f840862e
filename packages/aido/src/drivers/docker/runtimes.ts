import { AidoError, ISOLATIONS, type Isolation } from "@aido/sdk/protocol";

/** Names under which engines know each isolation's runtime, the usual one first. */
const RUNTIMES: Readonly<Record<Exclude<Isolation, "container">, readonly string[]>> = {
  gvisor: ["runsc"],
  sysbox: ["sysbox-runc"],
  kata: ["kata-runtime", "kata", "kata-qemu", "kata-clh", "kata-fc", "io.containerd.kata.v2"],
};

export const INSTALL: Readonly<Record<Exclude<Isolation, "container">, string>> = {
  gvisor:
    "Install gVisor's runsc, add it as a runtime named runsc to /etc/docker/daemon.json (`sudo runsc install` does both) and restart Docker.",
  sysbox:
    "Install Sysbox; its package adds the runtime sysbox-runc to Docker. It needs systemd and a Debian-like host.",
  kata: "Install Kata Containers on a machine with KVM (/dev/kvm) and add it as a runtime named kata-runtime to /etc/docker/daemon.json.",
};

export function availableIsolations(runtimes: readonly string[]): Isolation[] {
  return ISOLATIONS.filter(
    (isolation) => isolation === "container" || findRuntime(isolation, runtimes) !== undefined,
  );
}

/** Those whose runtime was registered to give no network. */
export function offlineIsolations(engine: {
  runtimes: readonly string[];
  offlineRuntimes: readonly string[];
}): Isolation[] {
  return availableIsolations(engine.runtimes).filter((isolation) => {
    const runtime = isolation === "container" ? undefined : findRuntime(isolation, engine.runtimes);
    return runtime !== undefined && engine.offlineRuntimes.includes(runtime);
  });
}

/** Undefined is the engine's default runtime. Refuses what is not there; a weaker one never stands in. */
export function runtimeFor(isolation: Isolation, runtimes: readonly string[]): string | undefined {
  if (isolation === "container") return undefined;
  const runtime = findRuntime(isolation, runtimes);
  if (runtime !== undefined) return runtime;
  throw new AidoError(
    "ISOLATION_UNAVAILABLE",
    `Isolation ${isolation} needs the runtime ${RUNTIMES[isolation][0]}, which this Docker engine does not have`,
    { hint: INSTALL[isolation], details: { isolation, runtimes } },
  );
}

function findRuntime(
  isolation: Exclude<Isolation, "container">,
  runtimes: readonly string[],
): string | undefined {
  return RUNTIMES[isolation].find((name) => runtimes.includes(name));
}
