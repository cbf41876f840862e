import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { apiSuite } from "./api-suite.ts";
import { ServerBed } from "./server-bed.ts";

const run = promisify(execFile);

apiSuite({
  driver: "docker",
  killContainer: async (bed, containerId) => {
    const { json } = await bed.get(`/api/sandbox/${containerId}`);
    await run("docker", ["kill", json.engineId]);
  },
});

test("S3-51 a command that needs more memory than its sandbox has ends as OUT_OF_MEMORY, one that takes too long as EXECUTION_TIMEOUT", async () => {
  await using bed = await ServerBed.start({ driver: "docker" });
  const id = await bed.sandbox({ options: { memoryLimit: "64m" } });
  const hog = await bed.exec(id, ["python3", "-c", "x = []\nwhile True: x.append(bytearray(1 << 20))"]);
  expect(hog.json).toMatchObject({ status: "error", state: "out_of_memory", errorCode: "OUT_OF_MEMORY" });
  const slow = await bed.exec(id, ["sleep", "600"], { timeout: 200 });
  expect(slow.json).toMatchObject({ status: "error", state: "timeout", errorCode: "EXECUTION_TIMEOUT" });
  const failed = await bed.exec(id, ["sh", "-c", "exit 3"]);
  expect(failed.json).toMatchObject({ status: "error", error: "Process exited with code 3" });
  expect(failed.json.errorCode).toBeUndefined();
});
