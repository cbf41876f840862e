import { randomBytes } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { type Finding, warning } from "./finding.ts";
import { judgeDevices, judgeNetwork, judgePrivileges, judgeProcesses, judgeReach } from "./judge.ts";
import type { ProbeSandbox } from "./probe-sandbox.ts";

/** Where the host keeps what must stay its own. Absent is as good as refused. */
const HOST_FILES = [
  "/etc/shadow",
  "/var/run/docker.sock",
  "/run/docker.sock",
  "/proc/kcore",
  "/proc/1/environ",
];

export async function probePrivileges(sandbox: ProbeSandbox): Promise<Finding> {
  const status = await sandbox.read("/proc/self/status");
  return "text" in status ? judgePrivileges(status.text) : untold("privileges", status.error);
}

export async function probeProcesses(sandbox: ProbeSandbox): Promise<Finding> {
  const processes = await sandbox.list("/proc");
  if ("error" in processes) return untold("processes", processes.error);
  const first = await sandbox.read("/proc/1/comm");
  const pids = processes.entries.map((entry) => entry.path).filter((name) => /^\d+$/.test(name));
  return judgeProcesses(pids, "text" in first ? first.text : "");
}

export async function probeDevices(sandbox: ProbeSandbox): Promise<Finding> {
  const devices = await sandbox.list("/dev");
  if ("error" in devices) return untold("devices", devices.error);
  return judgeDevices(devices.entries.filter((entry) => entry.path !== "").map((entry) => entry.path));
}

/** A file that only the host has, made for this, and some that every host has. */
export async function probeFiles(sandbox: ProbeSandbox, directory: string): Promise<Finding> {
  const canary = join(directory, `.aido-canary-${randomBytes(8).toString("hex")}`);
  await writeFile(canary, "canary", { mode: 0o644, flag: "wx" });
  try {
    const attempts = [];
    for (const what of [canary, join("/proc/1/root", canary), join("/proc/1/cwd", canary), ...HOST_FILES]) {
      attempts.push({ what, reached: await hasContent(sandbox, what) });
    }
    return judgeReach("files", attempts, "the host's files are out of reach");
  } finally {
    await rm(canary, { force: true });
  }
}

/** A server on the host's loopback must not hear from a sandbox. Programs that could call it are tried if there. */
export async function probeNetwork(sandbox: ProbeSandbox): Promise<Finding> {
  let reached = false;
  const server = createServer((connection) => {
    reached = true;
    connection.destroy();
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  try {
    const address = server.address();
    const port = address !== null && typeof address === "object" ? address.port : 0;
    const tried = [
      await sandbox.run(["/bin/bash", "-c", `exec 3<>/dev/tcp/127.0.0.1/${port}`]),
      await sandbox.run(["/bin/nc", "-w", "1", "127.0.0.1", `${port}`]),
      await sandbox.run(["/bin/busybox", "nc", "-w", "1", "127.0.0.1", `${port}`]),
    ].some(Boolean);
    const devices = await sandbox.read("/proc/net/dev");
    if ("error" in devices) return untold("network", devices.error);
    return judgeNetwork(devices.text, { reached, tried });
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}

/** What one sandbox has, another one must not see. Nor may either see the way to its own supervisor. */
export async function probeNeighbour(sandbox: ProbeSandbox, neighbour: ProbeSandbox): Promise<Finding> {
  const secret = join(neighbour.workdir, `.aido-canary-${randomBytes(8).toString("hex")}`);
  const written = await neighbour.write(secret, "canary");
  if ("error" in written) return untold("neighbours", written.error);
  const socket = await sandbox.stat("/run/aido/agent.sock");
  const attempts = [
    { what: "another sandbox's file", reached: await hasContent(sandbox, secret) },
    { what: "its supervisor's socket", reached: "entries" in socket },
  ];
  return judgeReach(
    "neighbours",
    attempts,
    "sandboxes cannot see each other's files or their supervisors' sockets",
  );
}

async function hasContent(sandbox: ProbeSandbox, path: string): Promise<boolean> {
  const found = await sandbox.read(path);
  return "text" in found && found.text !== "";
}

function untold(name: string, error: string): Finding {
  return warning(name, `It could not be told from inside a sandbox (${error})`);
}
