import { expect, test } from "vitest";
import { docker } from "../../../test/backends/docker-cli.ts";
import { OwnEngine } from "../../../test/backends/own-engine.ts";
import { Engine } from "./engine.ts";
import { ensureSharedNetwork, SHARED_NETWORK } from "./shared-network.ts";

const named = async (host: string) => {
  const list = ["network", "ls", "--quiet", "--filter", `name=${SHARED_NETWORK}`];
  return (await docker(list, { host })).split("\n").filter((id) => id !== "");
};

test("of many who ask for the network at once, in several processes, all have the same one", async () => {
  await using own = await OwnEngine.start();
  const engines = Array.from({ length: 4 }, () => new Engine({ host: own.host }));
  await Promise.all(engines.flatMap((engine) => [ensureSharedNetwork(engine), ensureSharedNetwork(engine)]));
  expect(await named(own.host)).toHaveLength(1);
  for (const engine of engines) engine.close();
});

test("a network of that name on which containers reach each other is refused, and stays", async () => {
  await using own = await OwnEngine.start();
  await docker(["network", "create", SHARED_NETWORK], { host: own.host });
  const engine = new Engine({ host: own.host });
  await expect(ensureSharedNetwork(engine)).rejects.toMatchObject({
    code: "CONTAINER_CREATION_FAILED",
    hint: expect.stringContaining(`docker network rm ${SHARED_NETWORK}`),
  });
  expect(await named(own.host)).toHaveLength(1);
  engine.close();
});
