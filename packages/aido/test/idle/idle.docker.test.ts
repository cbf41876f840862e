import { randomBytes } from "node:crypto";
import { docker } from "../backends/docker-cli.ts";
import { idleContract } from "./idle-contract.ts";

idleContract({
  driver: "docker",
  image: "aido-test:busybox",
  python: "aido-test:python",
  removeContainer: async (aido, id) => {
    await docker(["rm", "-f", (await aido.driver.inspect(id))?.containerId ?? ""]);
  },
  startContainer: async (aido, id) => {
    await docker(["start", (await aido.driver.inspect(id))?.containerId ?? ""]);
  },
  foreign: async () => {
    const name = `not-of-aido-${randomBytes(4).toString("hex")}`;
    await docker(["run", "-d", "--name", name, "aido-test:busybox", "sleep", "300"]);
    return {
      isRunning: async () => (await docker(["inspect", "-f", "{{.State.Running}}", name])) === "true",
      [Symbol.asyncDispose]: async () => {
        await docker(["rm", "-f", name]);
      },
    };
  },
});
