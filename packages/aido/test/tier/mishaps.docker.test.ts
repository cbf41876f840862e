import { expect, test } from "vitest";
import { OwnEngine } from "../backends/own-engine.ts";
import { TcpProxy } from "../backends/tcp-proxy.ts";
import { Mishap, mishapSuite } from "./mishap-suite.ts";

const IMAGE = "aido-test:busybox";
const SOCKET = (process.env["DOCKER_HOST"] ?? "unix:///var/run/docker.sock").replace(/^unix:\/\//, "");

mishapSuite("docker", IMAGE);

test("an engine that is gone during a commit leaves the sandbox hot, and what it had made meanwhile is cleared away", async () => {
  await using place = await Mishap.make("docker", IMAGE, {});
  await using proxy = await TcpProxy.to({ path: SOCKET });
  const aido = await place.open();
  const id = await place.stopped(aido, "hot");
  const away = await place.open({ AIDO_DOCKER_HOST: `tcp://127.0.0.1:${proxy.port}` });
  proxy.onSent = (chunk) => {
    // The engine has heard of it and goes on; nobody hears what becomes of it.
    if (!/^POST \/[^ ]*commit/m.test(chunk.toString("latin1"))) return;
    proxy.isRefusing = true;
    proxy.cut();
  };
  expect(await place.collect(away, id)).toMatchObject({
    warmed: [],
    failed: [{ id, code: "RUNTIME_UNAVAILABLE" }],
  });
  expect(proxy.isRefusing).toBe(true);
  expect(await aido.store.sandboxes.get(id)).toMatchObject({ state: "stopped", tier: "hot" });
  proxy.onSent = () => undefined;
  proxy.isRefusing = false;
  expect(await place.collect(away, id)).toMatchObject({ warmed: [id], failed: [] });
  expect(await aido.driver.list()).toEqual([]);
  const next = await place.open();
  await next.gc.collect();
  await next.sandboxes.start(id);
  await place.expectBack(next, id);
  await next.sandboxes.destroy(id);
  await place.expectNothingLeft(next);
});

test("an engine that is killed in the middle of a commit has the sandbox's files when it is back", {
  timeout: 240_000,
}, async () => {
  await using engine = await OwnEngine.start();
  await engine.addImage("busybox");
  const path = engine.host.replace(/^unix:\/\//, "");
  await using proxy = await TcpProxy.to({ path });
  await using place = await Mishap.make("docker", IMAGE, { AIDO_DOCKER_HOST: engine.host });
  const aido = await place.open();
  const id = await place.stopped(aido, "hot");
  const away = await place.open({ AIDO_DOCKER_HOST: `tcp://127.0.0.1:${proxy.port}` });
  let killing: Promise<void> | undefined;
  proxy.onSent = (chunk) => {
    if (/^POST \/[^ ]*commit/m.test(chunk.toString("latin1"))) killing ??= engine.kill();
  };
  expect(await place.collect(away, id)).toMatchObject({
    warmed: [],
    failed: [{ id, code: "RUNTIME_UNAVAILABLE" }],
  });
  await killing;
  expect(await aido.store.sandboxes.get(id)).toMatchObject({ state: "stopped", tier: "hot" });
  proxy.onSent = () => undefined;
  await engine.restart();
  expect(await place.collect(away, id)).toMatchObject({ warmed: [id], failed: [] });
  await aido.sandboxes.start(id);
  await place.expectBack(aido, id);
  await aido.sandboxes.destroy(id);
  await aido.gc.collect();
  await place.expectNothingLeft(aido);
});
