import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type DockerBackend, makeDockerBackend } from "../../../test/backends/docker-backend.ts";
import { findRunsc, OwnEngine } from "../../../test/backends/own-engine.ts";
import { connectionContract } from "../../../test/contract/driver-connection.ts";
import { launch } from "../../../test/contract/launch.ts";

let engine: OwnEngine;

beforeAll(async () => {
  const path = await findRunsc();
  engine = await OwnEngine.start({ runtimes: { runsc: { path, runtimeArgs: ["--network=none"] } } });
  await engine.addImage("busybox");
});

afterAll(async () => {
  await engine?.[Symbol.asyncDispose]();
});

/** Every sandbox of this backend is one of gVisor's, whatever a suite asks for. */
async function makeBackend(): Promise<DockerBackend> {
  const backend = await makeDockerBackend({ host: engine.host });
  const { driver } = backend;
  const create = driver.create.bind(driver);
  driver.create = (spec, signal) => create({ ...spec, isolation: "gvisor" }, signal);
  return backend;
}

describe("gVisor", () => {
  test("the engine's runtime is offered as isolation gvisor", async () => {
    await using backend = await makeBackend();
    expect((await backend.driver.capabilities()).isolations).toEqual(["container", "gvisor"]);
  });

  test("commands run on gVisor's kernel, as an ordinary user without capabilities", async () => {
    await using backend = await makeBackend();
    const { sh } = await launch(backend);
    expect((await sh("dmesg 2>/dev/null | head -1")).stdout).toContain("gVisor");
    const status = (await sh("cat /proc/self/status")).stdout;
    expect(status).toMatch(/^CapEff:\s+0+$/m);
    expect((await sh("id -u")).stdout).toBe("1000\n");
  });

  test("usage is counted", async () => {
    await using backend = await makeBackend();
    const { id } = await launch(backend);
    expect((await backend.driver.usage(id)).memoryBytes).toBeGreaterThan(0);
  });

  connectionContract({ make: makeBackend, hello: ["/bin/echo", "hello"], isolates: true });
});
