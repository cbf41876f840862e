import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { docker } from "../test/backends/docker-cli.ts";
import { aidoContract, openPlace, output } from "../test/contract/aido-contract.ts";
import { openAido } from "./compose.ts";
import { loadConfig } from "./config/load-config.ts";
import { makeLogger } from "./log/make-logger.ts";

aidoContract({ driver: "docker", image: "aido-test:busybox" });

test("what an image sets is seen by every exec, beneath what the sandbox and the exec set", async () => {
  const image = `aido-test:env-${process.pid}`;
  const file = `FROM aido-test:busybox
ENV PATH=/opt/tools:/bin HOME=/root GREETING="good=day" ONE=image TWO=image
`;
  await docker(["build", "-q", "-t", image, "-"], { input: file });
  try {
    await using place = openPlace({ driver: "docker", image });
    const aido = await place.open();
    const { id } = await aido.sandboxes.create({ env: { ONE: "sandbox", TWO: "sandbox" }, ttlMs: 60_000 });
    const argv = ["sh", "-c", 'echo "$PATH $HOME $GREETING $ONE $TWO"'];
    expect(await output(aido, id, argv, { TWO: "exec" })).toBe(
      "/opt/tools:/bin /root good=day sandbox exec\n",
    );
  } finally {
    await docker(["rmi", image]);
  }
});

test("the disk limit counts what is outside the working directory and what its user has closed to itself", async () => {
  await using place = openPlace({ driver: "docker", image: "aido-test:busybox" });
  const aido = await place.open();
  const { id } = await aido.sandboxes.create({ limits: { diskBytes: 4 * 1024 * 1024 }, ttlMs: 60_000 });
  const fill = "mkdir closed && head -c 8388608 /dev/zero > closed/big; chmod 000 closed; sleep 60";
  await aido.execs.start(id, { argv: ["sh", "-c", `cd /tmp && ${fill}`] });
  const ended = await aido.sandboxes.untilEnded(id, AbortSignal.timeout(60_000));
  expect(ended).toMatchObject({ state: "stopped", endReason: "disk_full" });
});

test("with the driver auto, a sandbox is reached by the driver that has it", async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "aido-compose-"));
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  const open = (driver: "local" | "auto", sandbox?: string) => {
    const { config } = loadConfig({
      env: { XDG_CONFIG_HOME: "/nowhere" },
      cwd: dataDir,
      flags: { dataDir, driver },
    });
    return openAido({ config, logger: makeLogger(config), sandbox });
  };
  const local = await open("local");
  const { id } = await local.sandboxes.create({ image: "host", name: "mine", ttlMs: 60_000 });
  await local.close();
  for (const [reference, driver] of [
    [undefined, "docker"],
    ["nothere", "docker"],
    [id.slice(0, 5), "local"],
    ["mine", "local"],
  ] as const) {
    const aido = await open("auto", reference);
    expect([reference, aido.driver.name]).toEqual([reference, driver]);
    if (reference === "mine") {
      expect(await output(aido, "mine", ["echo", "found"])).toBe("found\n");
      await aido.sandboxes.destroy("mine");
    }
    await aido.close();
  }
});
