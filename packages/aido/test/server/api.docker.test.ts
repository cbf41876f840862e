import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { apiSuite } from "./api-suite.ts";

const run = promisify(execFile);

apiSuite({
  driver: "docker",
  killContainer: async (bed, containerId) => {
    const { json } = await bed.get(`/api/sandbox/${containerId}`);
    await run("docker", ["kill", json.engineId]);
  },
});
