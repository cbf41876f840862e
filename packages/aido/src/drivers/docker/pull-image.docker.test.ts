import { isAidoError } from "@aido/sdk/protocol";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeDockerBackend } from "../../../test/backends/docker-backend.ts";
import { docker } from "../../../test/backends/docker-cli.ts";
import { OwnEngine } from "../../../test/backends/own-engine.ts";
import { pushRandomImage } from "../../../test/backends/random-image.ts";
import { startRegistry } from "../../../test/backends/registry.ts";
import { freePort, type ServerProcess } from "../../../test/backends/server-process.ts";
import { TcpProxy } from "../../../test/backends/tcp-proxy.ts";

let registry: ServerProcess;
let engine: OwnEngine;

beforeAll(async () => {
  registry = await startRegistry();
  // The engine itself tries a layer five times over most of a minute; here once is enough.
  engine = await OwnEngine.start({ "max-download-attempts": 1 });
});

afterAll(async () => {
  await engine?.[Symbol.asyncDispose]();
  await registry?.[Symbol.asyncDispose]();
});

const isHere = async (image: string) => (await docker(["images", "-q", image], { host: engine.host })) !== "";
const makeBackend = () => makeDockerBackend({ host: engine.host });

test("S0-37 an image that is missing is pulled, and its progress is told", async () => {
  await using backend = await makeBackend();
  const image = `127.0.0.1:${registry.port}/team/tool:1`;
  await pushRandomImage(image, 2_000_000, engine.host);
  expect(await isHere(image)).toBe(false);
  const steps: string[] = [];
  await backend.driver.ensureImage(image, { onProgress: (step) => steps.push(step) });
  expect(await isHere(image)).toBe(true);
  expect(steps).toEqual([
    `Pulling ${image}`,
    expect.stringMatching(/: 1 of 1 layers, 2\.\d MB$/),
    `Pulled ${image}`,
  ]);
  const again: string[] = [];
  await backend.driver.ensureImage(image, { onProgress: (step) => again.push(step) });
  expect(again).toEqual([]);
});

test("a name without a tag means latest, and no other tag is pulled", async () => {
  await using backend = await makeBackend();
  const image = `127.0.0.1:${registry.port}/team/untagged`;
  await pushRandomImage(`${image}:latest`, 1_000, engine.host);
  await pushRandomImage(`${image}:other`, 1_000, engine.host);
  await backend.driver.ensureImage(image);
  expect(await isHere(`${image}:latest`)).toBe(true);
  expect(await isHere(`${image}:other`)).toBe(false);
});

test("S0-86 a registry that is down is asked twice, then the failure says which image and what to do", async () => {
  await using backend = await makeBackend();
  const image = `127.0.0.1:${await freePort()}/team/tool:1`;
  const steps: string[] = [];
  const failure = await backend.driver
    .ensureImage(image, { onProgress: (step) => steps.push(step) })
    .catch((error: unknown) => error);
  expect(failure).toSatisfy((error) => isAidoError(error, "IMAGE_PULL_FAILED"));
  expect(failure).toMatchObject({
    message: expect.stringMatching(new RegExp(`^Image ${image} could not be pulled: .*connection refused`)),
    hint: expect.stringContaining(`docker pull ${image}`),
  });
  expect(steps.filter((step) => step === `Pulling ${image}`)).toHaveLength(2);
  expect(steps.filter((step) => step.includes("trying once more"))).toHaveLength(1);
});

test("S0-86 a registry that dies in the middle of a pull is an error, and no half image stays", async () => {
  await using backend = await makeBackend();
  await pushRandomImage(`127.0.0.1:${registry.port}/team/cut:1`, 4_000_000, engine.host);
  await using proxy = await TcpProxy.to({ host: "127.0.0.1", port: registry.port });
  proxy.cutAfterBytes = 1_000_000;
  const image = `127.0.0.1:${proxy.port}/team/cut:1`;
  const failure = await backend.driver.ensureImage(image).catch((error: unknown) => error);
  expect(failure).toSatisfy((error) => isAidoError(error, "IMAGE_PULL_FAILED"));
  expect(await isHere(image)).toBe(false);
});

test("S0-86 a registry that dies once is no failure: the second try gets the image", async () => {
  await using backend = await makeBackend();
  await pushRandomImage(`127.0.0.1:${registry.port}/team/once:1`, 4_000_000, engine.host);
  await using proxy = await TcpProxy.to({ host: "127.0.0.1", port: registry.port });
  proxy.cutAfterBytes = 1_000_000;
  const image = `127.0.0.1:${proxy.port}/team/once:1`;
  await backend.driver.ensureImage(image, {
    onProgress: (step) => {
      if (step.includes("trying once more")) proxy.cutAfterBytes = undefined;
    },
  });
  expect(await isHere(image)).toBe(true);
});

test("an image that its registry does not have is not found", async () => {
  await using backend = await makeBackend();
  const image = `127.0.0.1:${registry.port}/team/missing:1`;
  const failure = await backend.driver.ensureImage(image).catch((error: unknown) => error);
  expect(failure).toSatisfy((error) => isAidoError(error, "IMAGE_NOT_FOUND"));
  expect(failure).toMatchObject({ message: expect.stringContaining(image) });
});

test("a name that is no image name is refused as such", async () => {
  await using backend = await makeBackend();
  for (const image of ["Upper/Case:1", "../containers/json?x=", "a b", "x:y:z"]) {
    const failure = await backend.driver.ensureImage(image).catch((error: unknown) => error);
    expect(`${image} ${isAidoError(failure) ? failure.code : failure}`).toBe(`${image} VALIDATION_ERROR`);
  }
});

test("a pull that is cancelled ends at once with the caller's reason", async () => {
  await using backend = await makeBackend();
  await pushRandomImage(`127.0.0.1:${registry.port}/team/slow:1`, 1_000_000, engine.host);
  await using proxy = await TcpProxy.to({ host: "127.0.0.1", port: registry.port });
  proxy.holdAfterBytes = 100_000;
  const cancel = new AbortController();
  const reason = new Error("enough");
  const pull = backend.driver.ensureImage(`127.0.0.1:${proxy.port}/team/slow:1`, { signal: cancel.signal });
  await proxy.held;
  cancel.abort(reason);
  await expect(pull).rejects.toBe(reason);
});
