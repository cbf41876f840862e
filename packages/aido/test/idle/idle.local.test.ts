import { spawn } from "node:child_process";
import { once } from "node:events";
import { idleContract } from "./idle-contract.ts";

idleContract({
  driver: "local",
  image: "bash",
  python: "bash",
  removeContainer: (aido, id) => aido.driver.remove(id),
  startContainer: (aido, id) => aido.driver.start(id),
  foreign: async () => {
    const child = spawn("sleep", ["300"], { stdio: "ignore" });
    await once(child, "spawn");
    return {
      isRunning: async () => child.exitCode === null && child.signalCode === null,
      [Symbol.asyncDispose]: async () => {
        const ended = once(child, "exit");
        child.kill("SIGKILL");
        await ended;
      },
    };
  },
});
