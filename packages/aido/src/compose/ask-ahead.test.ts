import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { askAhead } from "./ask-ahead.ts";

/** An engine that only says what it is asked. */
async function listeningEngine() {
  const directory = await mkdtemp(join(tmpdir(), "aido-ahead-"));
  const path = join(directory, "docker.sock");
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? "");
    response.end("{}");
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return {
    path,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await rm(directory, { recursive: true });
    },
  };
}

test.each([
  [["run", "task.py"]],
  [["create"]],
  [["swarm"]],
  [["swarm", "--all"]],
  [["swarm", "run", "--file", "a.json"]],
  [["swarm", "resume"]],
])("the machine's own engine is asked what it can do before %j is loaded", async (argv) => {
  await using engine = await listeningEngine();
  const answers = await askAhead(argv, {}, engine.path);
  expect(await answers?.info).toEqual({});
  await answers?.networks;
  expect(engine.asked.toSorted()).toEqual(["/info", "/networks"]);
});

test.each([
  [["ls"], {}],
  [[], {}],
  [["swarm", "status"], {}],
  [["swarm-status"], {}],
  [["swarm", "--help"], {}],
  [["swarm", "run"], { DOCKER_HOST: "tcp://127.0.0.1:2375" }],
  [["run", "task.py", "--driver", "local"], {}],
  [["run", "task.py", "--driver=local"], {}],
  [["run", "--help"], {}],
  [["create", "--server", "http://127.0.0.1:3000"], {}],
  [["run", "task.py"], { DOCKER_HOST: "tcp://127.0.0.1:2375" }],
  [["run", "task.py"], { AIDO_URL: "http://127.0.0.1:3000" }],
  [["run", "task.py"], { AIDO_DRIVER: "local" }],
] as const)("%j with %j asks no engine ahead", async (argv, env) => {
  await using engine = await listeningEngine();
  expect(await askAhead(argv, env, engine.path)).toBeUndefined();
  expect(engine.asked).toEqual([]);
});

test("where there is no engine nothing is asked", async () => {
  expect(await askAhead(["run", "task.py"], {}, "/nowhere/docker.sock")).toBeUndefined();
});
