import { isAidoError } from "@aido/sdk/protocol";
import { expect, onTestFinished, test } from "vitest";
import { makeDockerBackend } from "../../../test/backends/docker-backend.ts";
import { docker } from "../../../test/backends/docker-cli.ts";
import { until } from "../../../test/contract/driver-backend.ts";
import { buildOf } from "../../../test/contract/driver-images.ts";
import { launch } from "../../../test/contract/launch.ts";

/** Layers and containers that a build has marked. */
const layers = (marker: string) => docker(["images", "-aq", "--filter", `label=${marker}`]);
const containers = (marker: string) => docker(["ps", "-aq", "--filter", `label=${marker}`]);
const newMarker = () => `aido.test.build=${process.pid}-${Date.now()}`;

test("S3-85 commands of a build see no host path, no network when they are given none, and only the request's files", async () => {
  await using backend = await makeDockerBackend();
  const build = await buildOf(backend, {
    dockerfile: `FROM ${backend.image}\nRUN ls /sys/class/net > /nets; ls -a /ctx > /context || true\nCOPY . /ctx/\n`,
    files: [{ path: "deep/er/file", content: Buffer.from("x"), executable: false }],
  });
  await backend.driver.images.build(build);
  const seen = await docker([
    "run",
    "--rm",
    "--network",
    "none",
    build.tag,
    "/bin/sh",
    "-c",
    "cat /nets; find /ctx -type f",
  ]);
  expect(seen.split("\n").sort()).toEqual(["/ctx/Dockerfile", "/ctx/deep/er/file", "lo"]);
});

test("S3-85 a file from outside the request cannot be copied", async () => {
  await using backend = await makeDockerBackend();
  const dockerfile = `FROM ${backend.image}\nCOPY ../../../etc/passwd /stolen\n`;
  const build = await buildOf(backend, { dockerfile });
  await expect(backend.driver.images.build(build)).rejects.toSatisfy((error) =>
    isAidoError(error, "IMAGE_BUILD_FAILED"),
  );
});

test("S3-85 a command that takes more memory than a build has is killed, and the error says so", async () => {
  await using backend = await makeDockerBackend({ image: "aido-test:python" });
  const build = await buildOf(backend, {
    dockerfile: `FROM ${backend.image}\nRUN python3 -c "b = bytearray(400_000_000)"\n`,
    memoryBytes: 64 * 1_048_576,
  });
  const failure = await backend.driver.images.build(build).catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: "IMAGE_BUILD_FAILED", hint: expect.stringContaining("buildMemory") });
});

test("S3-85 an aborted build ends its command and leaves no layer and no container", async () => {
  await using backend = await makeDockerBackend();
  const marker = newMarker();
  const build = await buildOf(backend, {
    dockerfile: `FROM ${backend.image}\nLABEL ${marker}\nRUN echo started; sleep 600\n`,
  });
  const cancel = new AbortController();
  const reason = new Error("enough");
  const building = backend.driver.images.build(build, {
    signal: cancel.signal,
    onProgress: (step) => {
      if (step === "started") cancel.abort(reason);
    },
  });
  await expect(building).rejects.toBe(reason);
  await until("the build's container is gone", async () => (await containers(marker)) === "");
  await until("its layers are gone", async () => (await layers(marker)) === "");
});

test("S3-85 a build that fails leaves no layer behind", async () => {
  await using backend = await makeDockerBackend();
  const marker = newMarker();
  const dockerfile = `FROM ${backend.image}\nLABEL ${marker}\nRUN echo made > /made\nRUN exit 3\n`;
  const build = await buildOf(backend, { dockerfile });
  const failure = await backend.driver.images.build(build).catch((error: unknown) => error);
  expect(failure).toMatchObject({ message: expect.stringContaining("non-zero code: 3") });
  expect(await layers(marker)).toBe("");
});

test("S3-40 the committed files of a sandbox cannot be had as the image of another, by any name", async () => {
  await using backend = await makeDockerBackend();
  const { driver } = backend;
  const { id } = await launch(backend);
  await driver.stop(id, 1_000);
  const { reference } = await driver.commit(id);
  onTestFinished(async () => {
    await driver.removeImage(reference);
  });
  const tags = await docker(["inspect", "--format", '{{join .RepoTags " "}}', reference]);
  for (const name of [reference, tags, reference.replace("sha256:", "").slice(0, 12)]) {
    await expect(driver.ensureImage(name)).rejects.toSatisfy((error) =>
      isAidoError(error, "IMAGE_NOT_FOUND"),
    );
  }
  expect((await driver.images.list()).map((image) => image.id)).not.toContain(reference);
});
