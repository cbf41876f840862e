import type { RunOutput } from "@aido/sdk";
import { expect, test } from "vitest";
import { makeFakeHost } from "../../../test/run/fake-host.ts";
import { fileOf, stepOf } from "../../../test/run/run-harness.ts";

async function collect(chunks: AsyncIterable<RunOutput>): Promise<Record<string, string>> {
  const text: Record<string, string> = {};
  for await (const { step, stream, data } of chunks) {
    const name = step === undefined ? stream : `${step}.${stream}`;
    text[name] = (text[name] ?? "") + Buffer.from(data).toString();
  }
  return text;
}

test("S0-53 S0-54 logs of the newest run are read after it has ended and its container is gone", async () => {
  await using host = await makeFakeHost();
  const { id } = await host.up();
  await host.run({ sandbox: id, task: fileOf("t.sh", "out a\nerr b\nout c\n") });
  expect(await collect(host.runs.logs())).toEqual({ stdout: "a\nc\n", stderr: "b\n" });
});

test("S0-48 S0-49 S0-56 logs grow while the task runs, and following ends with the run", async () => {
  await using host = await makeFakeHost();
  const { id } = await host.up();
  await host.runs.start({ sandbox: id, task: fileOf("t.sh", "out first\nsleep 0.3\nout second\n") });
  const seen: string[] = [];
  let onDisk = "";
  for await (const { data } of host.runs.logs({ sandbox: id, follow: true })) {
    if (seen.length === 0) onDisk = await host.read(id, "outputs/stdout.log");
    seen.push(Buffer.from(data).toString());
  }
  expect(seen).toEqual(["first\n", "second\n"]);
  expect(onDisk).toBe("first\n");
});

test("S0-56 another process follows the same run to its end", async () => {
  await using host = await makeFakeHost();
  const { id } = await host.up();
  await host.runs.start({ sandbox: id, task: fileOf("t.sh", "out one\nsleep 0.3\nout two\n") });
  const other = host.another();
  expect(await collect(other.runs.logs({ sandbox: id, follow: true }))).toEqual({ stdout: "one\ntwo\n" });
  expect((await other.runs.wait(id)).status).toBe("completed");
  expect((await host.runs.wait(id)).status).toBe("completed");
});

test("S0-56 following begins before the run does", async () => {
  await using host = await makeFakeHost();
  const { id } = await host.up();
  const followed = collect(host.runs.logs({ sandbox: id, follow: true }));
  await host.run({ sandbox: id, task: fileOf("t.sh", "out x\n") });
  expect(await followed).toEqual({ stdout: "x\n" });
});

test("S0-56 S0-92 the output of steps comes in their order, each named", async () => {
  await using host = await makeFakeHost();
  const steps = [stepOf("a", "a.sh"), stepOf("b", "b.sh"), stepOf("c", "a.sh")];
  const tasks = [fileOf("a.sh", "out a\nsleep 0.1\n"), fileOf("b.sh", "err b\nexit 1\n")];
  const { id } = await host.up({ steps }, { tasks });
  await host.runs.start({ sandbox: id });
  expect(await collect(host.runs.logs({ sandbox: id, follow: true }))).toEqual({
    "a.stdout": "a\n",
    "b.stderr": "b\n",
  });
});

test("S0-54 a sandbox that has run nothing has no logs", async () => {
  await using host = await makeFakeHost();
  const { id } = await host.up();
  expect(await collect(host.runs.logs({ sandbox: id }))).toEqual({});
});

test("following can be aborted while the task runs on", async () => {
  await using host = await makeFakeHost();
  const { id } = await host.up();
  await host.runs.start({ sandbox: id, task: fileOf("t.sh", "out x\nsleep 0.2\n") });
  const abort = new AbortController();
  const follow = async () => {
    for await (const _ of host.runs.logs({ sandbox: id, follow: true }, abort.signal))
      abort.abort(new Error("enough"));
  };
  await expect(follow()).rejects.toThrow("enough");
  await expect(host.runs.wait(id, AbortSignal.abort(new Error("no time")))).rejects.toThrow("no time");
  expect((await host.runs.wait(id)).status).toBe("completed");
});
