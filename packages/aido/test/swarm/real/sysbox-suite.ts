import { expect, test } from "vitest";
import { storyJson } from "../../../src/core/swarm/testing/task-file-text.ts";
import type { OwnEngine } from "../../backends/own-engine.ts";
import { RealSwarm } from "./real-swarm.ts";
import type { Asked, Step } from "./scripted-model.ts";

/** Of those that an engine in a worker takes, what a plain runtime gives to root; Sysbox gives it all. */
const ENGINE_CAPABILITIES = { CHOWN: 0, DAC_OVERRIDE: 1, SETGID: 6, SETUID: 7, SYS_CHROOT: 18, MKNOD: 27 };
const LOOK =
  "grep -E '^(Uid|CapEff|CapBnd|NoNewPrivs):' /proc/self/status >look.txt; ls -l /var/run/docker.sock >>look.txt 2>&1; touch /home/agent/mine /workspace/here.txt";

function look({ step }: Asked): Step {
  return step === 0 ? { tool: "Bash", input: { command: LOOK, description: "Look" } } : { text: "Seen." };
}

/** What Claude Code's own shell saw of itself, by the branch that its worker pushed. */
async function seenBy(swarm: RealSwarm, options: readonly string[]) {
  const { code, stdout, stderr } = await swarm.aido("swarm", "--all", ...options);
  expect([code, swarm.statuses("cart")], stdout + stderr).toEqual([0, ["completed"]]);
  expect(swarm.subjects("cart")).toEqual(["US-001: Story US-001"]);
  expect(swarm.atOrigin("cart", "here.txt")).toBe("");
  const seen = swarm.atOrigin("cart", "look.txt");
  const [known] = JSON.parse(await swarm.docker("inspect", swarm.worker("cart")));
  const value = (name: string) => new RegExp(`^${name}:\\s+(\\S+)`, "m").exec(seen)?.[1] ?? "";
  expect(seen).toContain("'/var/run/docker.sock': No such file");
  expect(JSON.stringify(known.Mounts)).not.toContain("docker.sock");
  expect(known.HostConfig.Privileged).toBe(false);
  return {
    host: known.HostConfig,
    uid: value("Uid"),
    effective: BigInt(`0x${value("CapEff")}`),
    bounding: BigInt(`0x${value("CapBnd")}`),
    noNewPrivileges: value("NoNewPrivs"),
  };
}

/** Workers on Sysbox, as far as it goes without it, and the same ones in plain containers. */
export function sysboxSuite(engine: () => OwnEngine): void {
  const makeSwarm = () =>
    RealSwarm.make({ tasks: { cart: [storyJson("US-001")] }, script: look, host: engine().host });

  test("S1-8 S1-58 S1-59 S1-60 without a word on isolation workers are left to Sysbox's runtime: root with its capabilities, unprivileged, without the host's engine, and Claude Code's work is at origin", {
    timeout: 120_000,
  }, async () => {
    await using swarm = await makeSwarm();
    const options = swarm.options.filter((word) => word !== "--isolation" && word !== "container");
    const seen = await seenBy(swarm, options);
    expect(seen.host).toMatchObject({ Runtime: "sysbox-runc", CapDrop: null, SecurityOpt: null });
    expect([seen.uid, seen.noNewPrivileges]).toEqual(["0", "0"]);
    for (const [name, bit] of Object.entries(ENGINE_CAPABILITIES))
      expect((seen.effective >> BigInt(bit)) & 1n, name).toBe(1n);
  });

  test("S1-59 in plain containers the same worker is no root and has no capability, nor a way to one", {
    timeout: 120_000,
  }, async () => {
    await using swarm = await makeSwarm();
    const { host, ...seen } = await seenBy(swarm, swarm.options);
    expect(host).toMatchObject({ Runtime: "runc", CapDrop: ["ALL"], SecurityOpt: ["no-new-privileges"] });
    expect(seen).toEqual({ uid: "1000", effective: 0n, bounding: 0n, noNewPrivileges: "1" });
  });
}
