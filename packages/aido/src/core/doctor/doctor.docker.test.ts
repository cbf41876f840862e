import { expect, test } from "vitest";
import { makeDockerBackend } from "../../../test/backends/docker-backend.ts";
import { SystemClock } from "../system-clock.ts";
import { doctor } from "./doctor.ts";

const silent = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silent,
};

test("Docker's sandboxes pass every probe, and none is left behind", async () => {
  await using backend = await makeDockerBackend();
  const findings = await doctor({
    driver: backend.driver,
    image: backend.image,
    clock: new SystemClock(),
    logger: silent,
    canaryDirectory: backend.directory,
  });
  const probed = ["start", "privileges", "files", "processes", "devices", "network", "neighbours"];
  expect(findings.filter(({ status }) => status === "failed")).toEqual([]);
  expect(
    findings.filter(({ status, name }) => status === "ok" && probed.includes(name)).map(({ name }) => name),
  ).toEqual(probed);
  expect(await backend.driver.list()).toEqual([]);
});
