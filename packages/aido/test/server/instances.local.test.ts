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

test("S2-4 operators need no one in the middle: each serves its own sandboxes, and the other's end is nothing to it", async () => {
  const env = { SIDECAR_IMAGE: "host" };
  await using one = await ServerBed.start({ driver: "local", env });
  await using two = await ServerBed.start({ driver: "local", env });
  const [mine, theirs] = [(await one.post("/api/jobs/0", {})).json, (await two.post("/api/jobs/0", {})).json];
  const exec = (bed: ServerBed, { sidecarUrl, token }: Record<string, string>) =>
    bed.post("/api/jobs/10", { sidecarUrl, sidecarToken: token, command: "echo here" });
  expect((await exec(two, { ...mine, sidecarUrl: mine.sandboxId })).status).toBe(404);
  await two.kill();
  expect((await exec(one, mine)).json).toMatchObject({ exitCode: 0, stdout: "here\n" });
  expect((await one.post("/api/jobs/3", { sandboxId: mine.sandboxId })).status).toBe(200);
  await two.start();
  const again = { ...theirs, sidecarUrl: theirs.sandboxId };
  expect((await exec(two, again)).json).toMatchObject({ exitCode: 0, stdout: "here\n" });
});
