import { createHash } from "node:crypto";
import { AidoError } from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import { makeFakeHost } from "../../../test/run/fake-host.ts";
import { fileOf } from "../../../test/run/run-harness.ts";

test("S0-80 S0-82 the host's network and privileges are off, and a run that was allowed them leaves none behind", async () => {
  await using host = await makeFakeHost({ dangerous: true });
  const { id } = await host.up({}, { autoDestroy: false });
  await host.run({ sandbox: id, task: fileOf("t.sh", ""), hostNetwork: true, privileged: true });
  expect(host.driver.spec(id)).toMatchObject({ network: "host", privileged: true });
  const entries = await host.events(id);
  expect(entries.find((entry) => entry.event === "run.starting")?.detail).toMatchObject({
    hostNetwork: true,
    privileged: true,
  });
  await host.sandboxes.stop(id);
  await host.run({ sandbox: id, task: fileOf("t.sh", "") });
  expect(host.driver.spec(id)).toMatchObject({ network: "none", privileged: false });
});

test("S0-83 the container goes with the run; the outputs stay until the sandbox is destroyed", async () => {
  await using host = await makeFakeHost();
  const { id } = await host.up();
  await host.run({ sandbox: id, task: fileOf("t.sh", "out x\n") });
  expect(await host.driver.list()).toEqual([]);
  expect(await host.sandboxes.get(id)).toMatchObject({ state: "stopped", endReason: "completed" });
  expect(await host.read(id, "outputs/stdout.log")).toBe("x\n");
  await host.sandboxes.destroy(id);
  await expect(host.read(id, "outputs/stdout.log")).rejects.toMatchObject({ code: "ENOENT" });
});

test("S0-83 without auto-destroy the container stays, without an end, and the next task uses it", async () => {
  await using host = await makeFakeHost();
  const { id } = await host.up();
  await host.run({ sandbox: id, task: fileOf("t.sh", "write /tmp/kept x\n"), autoDestroy: false });
  expect(await host.sandboxes.get(id)).toMatchObject({ state: "running", expiresAt: undefined });
  const summary = await host.run({
    sandbox: id,
    task: fileOf("u.sh", "read /tmp/kept\n"),
    autoDestroy: true,
  });
  expect(summary.status).toBe("completed");
  expect(await host.driver.list()).toEqual([]);
});

test("a run that is refused leaves the results of the one before as they are", async () => {
  await using host = await makeFakeHost({ dangerous: true });
  const { id } = await host.up({}, { autoDestroy: false });
  await host.run({ sandbox: id, task: fileOf("a.sh", "out kept\nwrite /outputs/file x\n") });
  const files = ["run.json", "outputs/stdout.log", "outputs/summary.json", "outputs/file"];
  const results = () => Promise.all(files.map((file) => host.read(id, file)));
  const before = await results();
  const task = fileOf("b.sh", "out other\n");
  const other = host.runs.start({ sandbox: id, task, hostNetwork: true });
  await expect(other).rejects.toMatchObject({ code: "EXECUTION_CONFLICT" });
  expect(await results()).toEqual(before);
  await host.sandboxes.stop(id);
  const silent = new AidoError("RUNTIME_UNAVAILABLE", "No engine answers");
  host.driver.failNext("capabilities", silent);
  await expect(host.runs.start({ sandbox: id, task })).rejects.toBe(silent);
  expect(await results()).toEqual(before);
  expect(await host.run({ sandbox: id, task })).toMatchObject({ status: "completed", task: "b.sh" });
});

test("S0-81 links in /outputs are left out, and the evidence says which", async () => {
  await using host = await makeFakeHost();
  const { id } = await host.up();
  const script =
    "link /outputs/passwd /etc/passwd\nlink /outputs/stdout.log /etc/hostname\nwrite /outputs/ok x\n";
  const summary = await host.run({ sandbox: id, task: fileOf("t.sh", script) });
  expect(summary.outputFiles).toEqual(["ok"]);
  expect(summary.skippedOutputs).toMatchObject({
    total: 2,
    first: [{ path: "passwd", reason: "symlink" }, { reason: "symlink" }],
  });
  const captured = (await host.events(id)).find((entry) => entry.event === "outputs.captured");
  expect(captured?.detail).toMatchObject({
    files: 1,
    contents: [{ path: "ok", size: 2, sha256: createHash("sha256").update("x\n").digest("hex") }],
    skippedTotal: 2,
  });
  expect(await host.read(id, "outputs/stdout.log")).toBe("");
});

test("a sandbox that another process destroys while a run begins is told as that", async () => {
  await using host = await makeFakeHost();
  const { id } = await host.up();
  const task = {
    path: "t.sh",
    async *content() {
      await host.another().sandboxes.destroy(id);
      yield Buffer.from("out x\n");
    },
  };
  await expect(host.runs.start({ sandbox: id, task })).rejects.toMatchObject({
    code: "CONTAINER_NOT_FOUND",
    message: `Sandbox ${id} was destroyed while its task ran`,
  });
  await expect(host.read(id, "run.json")).rejects.toMatchObject({ code: "ENOENT" });
});
