import { expect, test } from "vitest";
import { LOCAL_MODES, makeLocalBackend } from "../../../test/backends/local-backend.ts";
import { SystemClock } from "../system-clock.ts";
import { doctor } from "./doctor.ts";

const silent = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silent,
};

test.each(LOCAL_MODES)("$name: sandboxes pass every probe, and none is left behind", async ({ make }) => {
  await using backend = await make();
  const findings = await doctor({
    driver: backend.driver,
    image: "host",
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

test("an image that is not there is told, with what to type", async () => {
  await using backend = await makeLocalBackend();
  const findings = await doctor({
    driver: backend.driver,
    image: "redis:7",
    clock: new SystemClock(),
    logger: silent,
    canaryDirectory: backend.directory,
  });
  expect(findings.at(-1)).toMatchObject({
    name: "start",
    status: "warning",
    hint: expect.stringContaining("Docker"),
  });
});
