import { isAidoError } from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import { hasProjectQuota } from "./engine-info.ts";
import { availableIsolations, offlineIsolations, runtimeFor } from "./runtimes.ts";

test("what an engine's runtimes offer is offered, no more", () => {
  expect(availableIsolations(["runc"])).toEqual(["container"]);
  expect(availableIsolations(["runc", "runsc", "kata"])).toEqual(["container", "gvisor", "kata"]);
  expect(runtimeFor("container", ["runc"])).toBeUndefined();
  expect(runtimeFor("gvisor", ["runc", "runsc"])).toBe("runsc");
  expect(runtimeFor("kata", ["io.containerd.kata.v2"])).toBe("io.containerd.kata.v2");
});

test.each([
  ["gvisor", /runsc/],
  ["sysbox", /Sysbox/],
  ["kata", /KVM/],
] as const)("isolation %s is refused with what is missing and how to get it", (isolation, hint) => {
  const refuse = () => runtimeFor(isolation, ["runc"]);
  expect(refuse).toThrow(expect.toSatisfy((error: unknown) => isAidoError(error, "ISOLATION_UNAVAILABLE")));
  expect(refuse).toThrow(expect.objectContaining({ hint: expect.stringMatching(hint) }));
});

test("project quotas count where the engine's directory lies", () => {
  const mounts =
    "/dev/a / ext4 rw 0 0\n/dev/b /var/lib/docker xfs rw,noatime,prjquota 0 0\n/dev/c /var/lib xfs rw 0 0\n";
  expect(hasProjectQuota(mounts, "/var/lib/docker")).toBe(true);
  expect(hasProjectQuota(mounts, "/var/lib/docker-other")).toBe(false);
  expect(hasProjectQuota(mounts, "/srv")).toBe(false);
});

test("a runtime that was registered without a network makes its isolation one without", () => {
  const runtimes = ["runc", "runsc", "sysbox-runc"];
  expect(offlineIsolations({ runtimes, offlineRuntimes: ["runsc"] })).toEqual(["gvisor"]);
  expect(offlineIsolations({ runtimes, offlineRuntimes: [] })).toEqual([]);
});
