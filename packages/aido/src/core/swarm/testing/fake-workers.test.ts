import { type WorkersBed, workersContract } from "../../../../test/swarm/workers-contract.ts";
import { FakeWorkers } from "./fake-workers.ts";

/** An adapter as the contract's beds have it. */
async function makeBed(): Promise<WorkersBed> {
  const workers = new FakeWorkers();
  workers.onStart = (worker) => {
    const { request, env } = worker.started ?? { request: {}, env: {} as Record<string, string> };
    switch (env["KIND"]) {
      case "echo":
        worker.say(request);
        worker.write("note\n", "stderr");
        worker.finish(0);
        break;
      case "fail":
        worker.finish(3);
        break;
      default:
        worker.write("ready\n");
        worker.onStop = () => {
          worker.write("bye\n");
          worker.finish(130);
        };
    }
  };
  return {
    workers,
    image: "aimi-sandbox:latest",
    name: "aimi-swarm-login",
    another: async () => workers,
    [Symbol.asyncDispose]: async () => undefined,
  };
}

workersContract(makeBed);
