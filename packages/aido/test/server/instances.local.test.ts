import { expect, test } from "vitest";
import { ServerBed, until } from "./server-bed.ts";

test("S3-76 several servers on one data directory serve the same sandboxes", async () => {
  await using one = await ServerBed.start({ driver: "local" });
  await using two = await ServerBed.start({ driver: "local", dataDir: one.dataDir });
  const id = await one.sandbox({ name: "shared" });
  expect((await two.sh(id, "echo from the other > file")).json.status).toBe("success");
  expect((await one.sh("shared", "cat file")).json.stdout).toBe("from the other\n");
  const { json } = await one.sh(id, "echo begun; while [ ! -e go ]; do sleep 0.02; done; echo done", {
    background: true,
  });
  const path = `/api/sandbox/${id}/exec/${json.id}`;
  await until("the other sees it", async () => (await two.get(path)).json.stdout === "begun\n");
  await two.sh(id, "touch go");
  await until("the other sees its end", async () => (await two.get(path)).json.stdout === "begun\ndone\n");
  expect((await two.call("DELETE", `/api/sandbox/${id}`)).status).toBe(200);
  expect((await one.get(`/api/sandbox/${id}`)).status).toBe(404);
});
