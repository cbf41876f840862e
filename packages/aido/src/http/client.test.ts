import type { Aido } from "@aido/sdk";
import { toAidoError } from "@aido/sdk/protocol";
import { describe, expect, test } from "vitest";
import { ApiBed } from "../../test/server/api-bed.ts";

async function bytesOf(parts: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const kept: Uint8Array[] = [];
  for await (const part of parts) kept.push(part);
  return Buffer.concat(kept);
}

async function drain(parts: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of parts);
}

const ONLY_OF_A_REQUEST = new Set(["requestId", "execId", "cause"]);
/** What a caller can see of an error, but for what only a request has. */
async function failure(work: () => Promise<unknown>): Promise<object> {
  const error = await work().then(
    () => {
      throw new Error("it did not fail");
    },
    (thrown: unknown) => toAidoError(thrown),
  );
  const shown = Object.entries(error.details).filter(([name]) => !ONLY_OF_A_REQUEST.has(name));
  return {
    code: error.code,
    message: error.message.replace(/exec_[0-9a-f]+/, "exec_…"),
    hint: error.hint,
    status: error.status,
    exitCode: error.exitCode,
    details: JSON.parse(JSON.stringify(Object.fromEntries(shown))),
  };
}

describe("the SDK's client is core at a distance", () => {
  const failures: [string, (aido: Aido, id: string) => Promise<unknown>][] = [
    ["a sandbox that is not there", (aido) => aido.sandboxes.get("nothere1")],
    ["a name that is not allowed", (aido) => aido.sandboxes.create({ name: "-x" })],
    ["a name that is taken", (aido) => aido.sandboxes.create({ name: "box" })],
    ["an isolation that is not there", (aido) => aido.sandboxes.create({ isolation: "kata" })],
    ["an exec that is not there", (aido, id) => aido.execs.get(id, "none")],
    [
      "output of an exec that is not there",
      (aido, id) => drain(aido.execs.output(id, "none", { follow: true })),
    ],
    ["a program that is not there", (aido, id) => aido.execs.start(id, { argv: ["none"] })],
    [
      "input for a command that has ended",
      async (aido, id) => {
        const exec = await aido.execs.start(id, { argv: ["true"] });
        await aido.execs.wait(id, exec.id);
        await aido.execs.writeStdin(id, exec.id, Buffer.from("x"));
      },
    ],
    ["a file that is not there", (aido, id) => bytesOf(aido.files.read(id, "none"))],
    ["a listing of what is not there", (aido, id) => aido.files.list(id, "none")],
    ["an archive of what is not there", (aido, id) => bytesOf(aido.files.tarOut(id, "none"))],
    ["evidence that is not there", (aido) => drain(aido.evidence.read("nothere1"))],
    [
      "a stopped sandbox",
      async (aido, id) => {
        await aido.sandboxes.stop(id);
        await aido.execs.start(id, { argv: ["true"] });
      },
    ],
    ["runs that are not there", (aido) => aido.runs.get()],
  ];
  test.each(failures)("%s is the same error", async (_, work) => {
    await using bed = await ApiBed.open();
    const { id } = await bed.aido.sandboxes.create({ name: "box", profile: "server" });
    const here = await failure(() => work(bed.aido, id));
    expect(await failure(() => work(bed.client(), id))).toEqual(here);
  });

  test("sandboxes look the same from both sides", async () => {
    await using bed = await ApiBed.open();
    const aido = bed.client();
    const made = await aido.sandboxes.create({
      name: "box",
      env: { A: "b" },
      labels: { team: "a" },
      limits: { cpus: 0.25, pids: 9 },
      ttlMs: 60_000,
      network: "none",
    });
    const { labels: own, ...core } = await bed.aido.sandboxes.get("box");
    const { labels, ...seen } = await aido.sandboxes.get(made.id);
    expect(seen).toEqual(core);
    expect(labels).toEqual({ team: "a" });
    expect(own).toMatchObject({ team: "a" });
    expect((await aido.sandboxes.setTtl("box", 0)).expiresAt).toBeUndefined();
    expect((await aido.sandboxes.stop("box", { graceMs: 10 })).state).toBe("stopped");
    expect((await aido.sandboxes.start("box")).state).toBe("running");
    expect(await aido.sandboxes.stats("box")).toMatchObject({
      at: expect.any(Date),
      pids: expect.any(Number),
    });
    await aido.sandboxes.destroy(made.id);
    await aido.sandboxes.destroy(made.id);
    expect(await aido.sandboxes.list({ states: ["deleted"] })).toMatchObject([{ id: made.id }]);
    await expect(aido.sandboxes.create({ id: "mine" })).rejects.toMatchObject({ code: "UNSUPPORTED" });
  });

  test("a list is whole, whatever its pages", async () => {
    await using bed = await ApiBed.open();
    const aido = bed.client();
    for (let index = 0; index < 5; index++) {
      await aido.sandboxes.create({ labels: { parity: index % 2 === 0 ? "even" : "odd" } });
    }
    const ids = (await bed.aido.sandboxes.list()).map(({ id }) => id);
    expect((await aido.sandboxes.list()).map(({ id }) => id)).toEqual(ids);
    expect((await aido.sandboxes.list({ limit: 2 })).map(({ id }) => id)).toEqual(ids.slice(0, 2));
    expect((await aido.sandboxes.list({ limit: 5000, before: ids[1] })).map(({ id }) => id)).toEqual(
      ids.slice(2),
    );
    expect(await aido.sandboxes.list({ labels: { parity: "odd" } })).toHaveLength(2);
    expect(await aido.sandboxes.list({ states: [] })).toEqual([]);
  });

  test("execs look the same from both sides, and the same id runs once", async () => {
    await using bed = await ApiBed.open();
    const aido = bed.client();
    const sandbox = await bed.sandbox();
    const first = await aido.execs.start(sandbox, { argv: ["cat"], stdin: true, id: "mine" });
    expect((await aido.execs.start(sandbox, { argv: ["cat"], stdin: true, id: "mine" })).startedAt).toEqual(
      first.startedAt,
    );
    const input = Buffer.from(Array.from({ length: 100_000 }, (_, index) => index & 255));
    await aido.execs.writeStdin(sandbox, "mine", input);
    await aido.execs.closeStdin(sandbox, "mine");
    const parts: Uint8Array[] = [];
    for await (const { data } of aido.execs.output(sandbox, "mine", { follow: true })) parts.push(data);
    expect(Buffer.concat(parts).equals(input)).toBe(true);
    const ended = await aido.execs.wait(sandbox, "mine");
    expect(ended).toEqual(await bed.aido.execs.get(sandbox, "mine"));
    expect(await aido.execs.list(sandbox)).toEqual(await bed.aido.execs.list(sandbox));
    const some: Uint8Array[] = [];
    for await (const { data } of aido.execs.output(sandbox, "mine", { stdoutOffset: 99_990 }))
      some.push(data);
    expect(Buffer.concat(some).equals(input.subarray(99_990))).toBe(true);
  });

  test("input that the command does not read yet waits for it, however long, until the caller has enough", async () => {
    await using bed = await ApiBed.open();
    const aido = bed.client();
    const sandbox = await bed.sandbox();
    const { id } = await aido.execs.start(sandbox, { argv: ["sleep", "600"], stdin: true });
    const stop = new AbortController();
    const reason = new Error("enough");
    const writing = aido.execs.writeStdin(sandbox, id, new Uint8Array(2_000_000), stop.signal);
    writing.catch(() => undefined);
    expect(await aido.execs.get(sandbox, id)).toMatchObject({ status: "running" });
    stop.abort(reason);
    await expect(writing).rejects.toBe(reason);
    await aido.execs.kill(sandbox, id, { signal: "KILL" });
  });

  test("an abort stops waiting, and the command goes on until it is killed", async () => {
    await using bed = await ApiBed.open();
    const aido = bed.client();
    const sandbox = await bed.sandbox();
    const { id } = await aido.execs.start(sandbox, { argv: ["sleep", "600"] });
    const stop = new AbortController();
    const waiting = aido.execs.wait(sandbox, id, stop.signal);
    const reading = drain(aido.execs.output(sandbox, id, { follow: true }, stop.signal));
    const reason = new Error("enough");
    stop.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await expect(reading).rejects.toBe(reason);
    expect(await aido.execs.get(sandbox, id)).toMatchObject({ status: "running" });
    await aido.execs.kill(sandbox, id, { signal: "KILL" });
    expect(await aido.execs.wait(sandbox, id)).toMatchObject({ status: "killed", exitCode: 137 });
  });

  test("files look the same from both sides", async () => {
    await using bed = await ApiBed.open();
    const aido = bed.client();
    const sandbox = await bed.sandbox();
    const big = Buffer.from(Array.from({ length: 2_500_000 }, (_, index) => (index * 7) & 255));
    async function* pieces(): AsyncGenerator<Uint8Array> {
      for (let at = 0; at < big.length; at += 100_000) yield big.subarray(at, at + 100_000);
    }
    await aido.files.write(sandbox, "dir/big", pieces(), { mode: 0o750 });
    await aido.files.write(sandbox, "empty", new Uint8Array(0));
    expect((await bytesOf(aido.files.read(sandbox, "dir/big"))).equals(big)).toBe(true);
    expect((await bytesOf(aido.files.read(sandbox, "empty"))).length).toBe(0);
    expect(await aido.files.stat(sandbox, "dir/big")).toEqual(await bed.aido.files.stat(sandbox, "dir/big"));
    await aido.files.mkdir(sandbox, "a/b");
    await aido.files.move(sandbox, "dir/big", "a/b/c");
    const listed = await aido.files.list(sandbox, ".", { recursive: true });
    expect(listed).toEqual(await bed.aido.files.list(sandbox, ".", { recursive: true }));
    await aido.files.tarIn(sandbox, "copy", aido.files.tarOut(sandbox, "a"));
    expect((await bytesOf(aido.files.read(sandbox, "copy/b/c"))).equals(big)).toBe(true);
    await aido.files.remove(sandbox, "a");
    await aido.files.remove(sandbox, "a");
    await expect(aido.files.stat(sandbox, "a")).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
  });

  test("evidence looks the same from both sides", async () => {
    await using bed = await ApiBed.open();
    const aido = bed.client();
    const sandbox = await bed.sandbox();
    await aido.sandboxes.destroy(sandbox);
    const [here, there]: object[][] = [[], []];
    for await (const entry of bed.aido.evidence.read(sandbox)) here?.push(entry);
    for await (const entry of aido.evidence.read(sandbox)) there?.push(entry);
    expect(there).toEqual(here);
    expect(await aido.evidence.verify(sandbox)).toEqual(await bed.aido.evidence.verify(sandbox));
  });
});
