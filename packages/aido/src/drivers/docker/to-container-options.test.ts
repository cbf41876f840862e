import { expect, test } from "vitest";
import type { ContainerSpec } from "../../core/driver/driver.ts";
import { type ContainerPlan, toContainerOptions } from "./to-container-options.ts";

const SPEC: ContainerSpec = {
  sandboxId: "sbx_1",
  name: "aido-1",
  image: "tool:1",
  isolation: "container",
  network: "none",
  limits: { cpus: 0.5, memoryBytes: 1_000_000, pids: 7, diskBytes: 5_000, openFiles: 99, outputBytes: 0 },
  user: undefined,
  workdir: "/work",
  env: { SECRET: "value" },
  mounts: [{ source: "/host/in:puts", target: "/inputs", readOnly: true }],
  labels: { mine: "yes", "dev.aido.scope": "forged" },
  privileged: false,
};
const PLAN: ContainerPlan = {
  scope: "scope-1",
  runtime: undefined,
  user: { uid: 1000, gid: 1001 },
  transport: "socket",
  agentPath: "/opt/aido-agent",
  runDir: "/data/run",
  hostsFile: undefined,
  ownNetwork: undefined,
  enforcesDisk: false,
};

test("S0-46 S0-80 S0-82 S3-8 S3-38 S3-58 S3-59 limits, privileges and network are the strictest that work", () => {
  expect(toContainerOptions(SPEC, PLAN).HostConfig).toMatchObject({
    CapDrop: ["ALL"],
    CapAdd: ["SETUID", "SETGID", "SETPCAP", "KILL", "CHOWN"],
    SecurityOpt: ["no-new-privileges"],
    NetworkMode: "none",
    Memory: 1_000_000,
    MemorySwap: 1_000_000,
    NanoCpus: 500_000_000,
    PidsLimit: 7,
    PublishAllPorts: false,
    LogConfig: { Type: "none" },
    Ulimits: [
      { Name: "nofile", Soft: 99, Hard: 99 },
      { Name: "core", Soft: 0, Hard: 0 },
    ],
  });
  expect(toContainerOptions(SPEC, PLAN).HostConfig).not.toHaveProperty("Privileged");
});

test("S1-71 what a main command said last waits for its host for days", () => {
  const { Entrypoint = [] } = toContainerOptions(SPEC, PLAN);
  const lingerMs = Number(Entrypoint[Entrypoint.indexOf("--main-linger") + 1]);
  expect(lingerMs / 86_400_000).toBe(7);
});

test("labels say whose it is, and a sandbox's own labels cannot say otherwise", () => {
  expect(toContainerOptions(SPEC, PLAN).Labels).toEqual({
    mine: "yes",
    "dev.aido.sandbox": "sbx_1",
    "dev.aido.scope": "scope-1",
    "dev.aido.user": "1000:1001",
    "dev.aido.transport": "socket",
  });
});

test("the supervisor, its directory and the sandbox's mounts are mounted, nothing else", () => {
  const mounts = toContainerOptions(SPEC, PLAN).HostConfig?.Mounts;
  expect(mounts?.map(({ Source, Target, ReadOnly }) => [Source, Target, ReadOnly])).toEqual([
    ["/opt/aido-agent", "/.aido/aido-agent", true],
    ["/data/run", "/run/aido", false],
    ["/host/in:puts", "/inputs", true],
  ]);
});

test("S0-80 what has loopback alone is no work of the engine's, and gets its /etc/hosts read-only", () => {
  const options = toContainerOptions(SPEC, { ...PLAN, hostsFile: "/data/hosts" });
  expect(options).toMatchObject({ NetworkDisabled: true, HostConfig: { NetworkMode: "none" } });
  const hosts = options.HostConfig?.Mounts?.find(({ Target }) => Target === "/etc/hosts");
  expect(hosts).toMatchObject({ Source: "/data/hosts", ReadOnly: true });
  expect(toContainerOptions(SPEC, PLAN)).not.toHaveProperty("NetworkDisabled");
});

test("where sockets do not reach the host, the supervisor's directory is memory of the container", () => {
  const plan: ContainerPlan = { ...PLAN, transport: "exec", agentPath: undefined };
  expect(toContainerOptions(SPEC, plan).HostConfig?.Mounts?.[0]).toMatchObject({
    Type: "tmpfs",
    Target: "/run/aido",
    TmpfsOptions: { Mode: 0o700 },
  });
});

test("variables of the sandbox do not reach the engine", () => {
  expect(JSON.stringify(toContainerOptions(SPEC, PLAN))).not.toContain("SECRET");
});

test("a disk limit is given to engines that enforce it", () => {
  expect(toContainerOptions(SPEC, PLAN).HostConfig).not.toHaveProperty("StorageOpt");
  const enforced = toContainerOptions(SPEC, { ...PLAN, enforcesDisk: true });
  expect(enforced.HostConfig?.StorageOpt).toEqual({ size: "5000" });
});

test("privileged takes the place of the restrictions, and only when asked", () => {
  const { HostConfig, Entrypoint } = toContainerOptions({ ...SPEC, privileged: true }, PLAN);
  expect(HostConfig).toMatchObject({ Privileged: true, Memory: 1_000_000, NetworkMode: "none" });
  expect(HostConfig).not.toHaveProperty("CapDrop");
  expect(Entrypoint?.slice(-2)).toEqual(["--privileged", "root"]);
  expect(toContainerOptions(SPEC, PLAN).Entrypoint).not.toContain("--privileged");
});

test("S1-8 S1-59 S1-60 root keeps its capabilities in Sysbox's user namespace, unprivileged, and under nothing else", () => {
  const under = (isolation: ContainerSpec["isolation"]) =>
    toContainerOptions({ ...SPEC, isolation }, { ...PLAN, transport: "exec" });
  const sysbox = under("sysbox");
  expect(sysbox.HostConfig).toMatchObject({ Privileged: false, Memory: 1_000_000, PidsLimit: 7 });
  for (const name of ["CapDrop", "CapAdd", "SecurityOpt"]) expect(sysbox.HostConfig).not.toHaveProperty(name);
  expect(sysbox.Entrypoint?.slice(-2)).toEqual(["--privileged", "root"]);
  for (const isolation of ["container", "gvisor", "kata"] as const) {
    const { HostConfig, Entrypoint } = under(isolation);
    expect(HostConfig).toMatchObject({ CapDrop: ["ALL"], SecurityOpt: ["no-new-privileges"] });
    expect(Entrypoint).not.toContain("--privileged");
  }
});

test("swap is what is asked for beyond memory, and a network of its own has the sandbox's name", () => {
  const limits = { ...SPEC.limits, swapBytes: 500_000 };
  const plan = { ...PLAN, ownNetwork: "abc" };
  const options = toContainerOptions({ ...SPEC, limits, network: "isolated" }, plan);
  expect(options.HostConfig).toMatchObject({ MemorySwap: 1_500_000, NetworkMode: "aido-1-net" });
  expect(options.NetworkingConfig).toEqual({ EndpointsConfig: { "aido-1-net": { NetworkID: "abc" } } });
  const shared = toContainerOptions({ ...SPEC, network: "bridge" }, PLAN);
  expect(shared.HostConfig).toMatchObject({ NetworkMode: "aido-sandboxes" });
  expect(options.Labels).toMatchObject({ "dev.aido.network": "isolated" });
});
