import { HttpAido, type OutputChunk, SANDBOX_STATES, Sandbox } from "@aido/sdk";
import { expect, test } from "vitest";
import { TcpProxy } from "../backends/tcp-proxy.ts";
import { AidoServer } from "./aido-server.ts";
import { Project } from "./project.ts";

/** Numbered lines on both streams, so that a lost or repeated byte cannot go unseen. */
const COUNT = 40_000;
const LINES = `i=0; while [ $i -lt ${COUNT} ]; do echo "line $i"; echo "error $i" >&2; i=$((i+1)); done; exit 7`;

const numbered = (word: string, count: number): string =>
  Array.from({ length: count }, (_, index) => `${word} ${index}\n`).join("");

/** Joins chunks and insists that each begins where the one before it ended. */
class Transcript {
  readonly text = { stdout: "", stderr: "" };
  readonly #at = { stdout: 0, stderr: 0 };

  add(chunk: OutputChunk): void {
    expect(chunk.offset).toBe(this.#at[chunk.stream]);
    this.#at[chunk.stream] += chunk.data.length;
    this.text[chunk.stream] += Buffer.from(chunk.data).toString();
  }
}

test("connections that break mid-stream lose and repeat nothing", async () => {
  await using server = await AidoServer.start();
  await using proxy = await TcpProxy.to({ host: "127.0.0.1", port: server.port });
  const url = `http://127.0.0.1:${proxy.port}`;
  await using sandbox = await Sandbox.create({ image: "host" }, { url, retryDelayMs: 10 });
  const command = await sandbox.start(LINES);
  proxy.cutAfterBytes = 100_000;
  const seen = new Transcript();
  for await (const chunk of command) seen.add(chunk);
  expect((await command.wait()).exitCode).toBe(7);
  expect(seen.text.stdout).toBe(numbered("line", COUNT));
  expect(seen.text.stderr).toBe(numbered("error", COUNT));
  proxy.cutAfterBytes = undefined;
});

test.each(["kill", "stop"] as const)(
  "a server that is gone by %s and comes back goes on with the stream: every byte once, the true exit code",
  async (how) => {
    await using server = await AidoServer.start();
    await using sandbox = await Sandbox.create({ image: "host" }, { url: server.url, retryDelayMs: 50 });
    const script = `i=0; while [ ! -e stop ]; do echo "line $i"; i=$((i+1)); sleep 0.01; done; echo $i >&2; exit 9`;
    const command = await sandbox.start(script);
    const waiting = command.wait();
    const seen = new Transcript();
    let wasAway = false;
    for await (const chunk of command) {
      seen.add(chunk);
      if (!wasAway && seen.text.stdout.includes("line 50\n")) {
        wasAway = true;
        await server[how]();
        await server.restart();
        await sandbox.files.write("stop", "");
      }
    }
    expect(wasAway).toBe(true);
    expect(await waiting).toMatchObject({ exitCode: 9, status: "exited" });
    expect(seen.text.stdout).toBe(numbered("line", Number(seen.text.stderr)));
  },
);

test("a run is followed over a server that is killed and comes back, steps and summary included", async () => {
  await using server = await AidoServer.start();
  await using project = await Project.on(server.url, {
    "sandbox.yaml":
      "name: demo\nruntime: bash\nttl: 5m\nsteps:\n  - name: first\n    task: one.sh\n  - name: second\n    task: two.sh\n",
    "one.sh": "for i in $(seq 0 39999); do echo line $i; done\n",
    "two.sh":
      "for i in $(seq 0 99); do echo line $i; done; while [ ! -e /work/go ]; do sleep 0.05; done; echo end >&2; exit 4\n",
  });
  const { id } = await project.json<{ id: string }>(["sandbox", "up"]);
  await using proxy = await TcpProxy.to({ host: "127.0.0.1", port: server.port });
  await using running = project.start(["run", "--sandbox", id]);
  await running.until("line 39999");
  proxy.cutAfterBytes = 100_000;
  const aido = new HttpAido({ url: `http://127.0.0.1:${proxy.port}`, retryDelayMs: 20 });
  const seen = new Map<string | undefined, Transcript>();
  let wasAway = false;
  for await (const chunk of aido.runs.logs({ sandbox: id, follow: true })) {
    const { step } = chunk;
    if (!seen.has(step)) seen.set(step, new Transcript());
    seen.get(step)?.add(chunk);
    if (!wasAway && seen.get("second")?.text.stdout.includes("line 99\n") === true) {
      wasAway = true;
      await server.kill();
      await server.restart();
      await new HttpAido({ url: server.url }).files.write(id, "/work/go", new Uint8Array(0));
    }
  }
  expect(wasAway).toBe(true);
  expect(seen.get("first")?.text.stdout).toBe(numbered("line", 40_000));
  expect(seen.get("second")?.text).toEqual({ stdout: numbered("line", 100), stderr: "end\n" });
  expect(await aido.runs.wait(id)).toMatchObject({ status: "failed", exitCode: 4 });
  expect(await running.end()).toMatchObject({ code: 4 });
});

test("an upload that breaks off leaves no sandbox", async () => {
  await using server = await AidoServer.start();
  const aido = new HttpAido({ url: server.url });
  const spec = {
    name: "demo",
    runtime: "bash",
    ttlMs: 60_000,
    inputs: [],
    outputs: [],
    limits: {},
    timeoutMs: 0,
    env: {},
    network: "none" as const,
    steps: [],
  };
  async function* endless(): AsyncGenerator<Uint8Array> {
    for (let sent = 0; sent < 8; sent++) yield new Uint8Array(512 * 1024);
    throw new Error("the disk broke");
  }
  const inputs = [{ path: "big.bin", content: endless }];
  await expect(aido.runs.up({ spec, specText: "name: demo\n", inputs })).rejects.toThrow();
  const all = () => aido.sandboxes.list({ states: SANDBOX_STATES });
  await expect.poll(all, { timeout: 20_000 }).toMatchObject([{ state: "deleted" }]);
});
