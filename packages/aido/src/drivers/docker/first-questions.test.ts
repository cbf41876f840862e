import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { DockerDriver } from "./docker-driver.ts";
import { toEngineAddress } from "./engine-address.ts";
import { askFirst } from "./first-questions.ts";

/** An engine that counts what it is asked. */
async function countingEngine(answer: RequestListener) {
  const directory = await mkdtemp(join(tmpdir(), "aido-first-"));
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push((request.url ?? "").replace(/\?.*/, ""));
    answer(request, response);
  });
  const host = `unix://${join(directory, "docker.sock")}`;
  await new Promise<void>((resolve) => server.listen(host.slice("unix://".length), resolve));
  const answers = askFirst(toEngineAddress(host, undefined).options);
  const options = {
    host,
    answers,
    scope: "test",
    agentPath: "/nowhere",
    runDir: () => directory,
    hostsFile: `${directory}/hosts`,
  };
  const driver = new DockerDriver(options);
  return {
    asked,
    answers,
    driver,
    async [Symbol.asyncDispose]() {
      await driver.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await rm(directory, { recursive: true });
    },
  };
}

const describes: RequestListener = (request, response) => {
  const networks = [{ Name: "bridge", Driver: "bridge" }];
  const info = { ServerVersion: "99.1", Runtimes: { runc: {} } };
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify(request.url?.endsWith("/networks") === true ? networks : info));
};

test("what an engine was asked first is used once, and asked anew after that", async () => {
  await using engine = await countingEngine(describes);
  await Promise.all([engine.answers.info, engine.answers.networks]);
  expect(engine.asked.sort()).toEqual(["/info", "/networks"]);
  const first = await engine.driver.capabilities();
  expect(first).toMatchObject({ version: "Docker Engine 99.1", networks: ["none", "bridge", "host"] });
  expect(engine.asked).toHaveLength(2);
  expect(await engine.driver.capabilities()).toEqual(first);
  expect(engine.asked).toHaveLength(4);
});

test.each<[string, RequestListener]>([
  ["breaks off", (_, response) => response.destroy()],
  ["says no", (_, response) => response.writeHead(500).end("{}")],
  ["talks nonsense", (_, response) => response.end("<html>")],
])("an engine that %s at first is asked again", async (_, fails) => {
  let times = 0;
  await using engine = await countingEngine((request, response) =>
    ++times <= 2 ? fails(request, response) : describes(request, response),
  );
  expect(await engine.answers.info).toBeUndefined();
  expect(await engine.answers.networks).toBeUndefined();
  expect(await engine.driver.capabilities()).toMatchObject({ version: "Docker Engine 99.1" });
});
