import { apiSuite } from "./api-suite.ts";
import { firstProcessOf } from "./first-process.ts";

apiSuite({
  driver: "local",
  killContainer: async (_, containerId) => {
    process.kill(firstProcessOf(`marker-${containerId}`), "SIGKILL");
  },
});
