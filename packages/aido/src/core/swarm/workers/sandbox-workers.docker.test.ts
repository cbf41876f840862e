import { afterAll, beforeAll } from "vitest";
import { makeEngineBed, makeWorkerImage } from "../../../../test/swarm/workers-bed.ts";
import { workersContract } from "../../../../test/swarm/workers-contract.ts";

let made: Awaited<ReturnType<typeof makeWorkerImage>>;
beforeAll(async () => {
  made = await makeWorkerImage();
});
afterAll(async () => {
  await made?.[Symbol.asyncDispose]();
});

workersContract(() => makeEngineBed(made.image));
