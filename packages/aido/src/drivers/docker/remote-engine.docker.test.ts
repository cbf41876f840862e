import { isAidoError } from "@aido/sdk/protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeDockerBackend } from "../../../test/backends/docker-backend.ts";
import { TcpProxy } from "../../../test/backends/tcp-proxy.ts";
import { specOf, until } from "../../../test/contract/driver-backend.ts";
import { connectionContract } from "../../../test/contract/driver-connection.ts";
import { lifeContract } from "../../../test/contract/driver-life.ts";
import { launch } from "../../../test/contract/launch.ts";

let proxy: TcpProxy;

beforeAll(async () => {
  proxy = await TcpProxy.to({ path: "/var/run/docker.sock" });
});

afterAll(async () => {
  await proxy?.[Symbol.asyncDispose]();
});

const make = () => makeDockerBackend({ host: `tcp://127.0.0.1:${proxy.port}` });

describe("an engine behind TCP, which shares no files with this machine", () => {
  const suite = { make, hello: ["/bin/echo", "hello"], isolates: true };
  lifeContract(suite);
  connectionContract(suite);

  test("mounting a directory of this machine is refused", async () => {
    await using backend = await make();
    const mounts = [{ source: backend.directory, target: "/inputs", readOnly: true }];
    await expect(backend.driver.create(specOf(backend, { mounts }))).rejects.toSatisfy((error) =>
      isAidoError(error, "UNSUPPORTED"),
    );
    expect(await backend.driver.list()).toEqual([]);
  });

  test("the watch survives a lost connection and tells what ended meanwhile", async () => {
    await using backend = await make();
    const ended: string[] = [];
    const watching = new AbortController();
    const watch = backend.driver.watch((id) => ended.push(id), watching.signal);
    const first = await launch(backend);
    await backend.driver.stop(first.id, 2_000);
    await until("the first end is told", () => ended.includes(first.id));
    const second = await launch(backend);
    try {
      proxy.isRefusing = true;
      proxy.cut();
      // Another process, with a connection of its own, ends it while this one sees nothing.
      await using other = await makeDockerBackend({ scope: backend.scope });
      await other.driver.stop(second.id, 2_000);
      expect(ended).not.toContain(second.id);
      proxy.isRefusing = false;
      await until("the second end is told", () => ended.includes(second.id));
    } finally {
      proxy.isRefusing = false;
    }
    watching.abort();
    await watch;
  });
});
