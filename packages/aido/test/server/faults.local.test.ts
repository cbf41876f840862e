import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ExecViewer } from "./exec-viewer.ts";
import { readEvents } from "./read-events.ts";
import { ServerBed, until } from "./server-bed.ts";

const MIB = 1024 * 1024;

describe("what goes wrong around a server", () => {
  test("a graceful shutdown lets requests end, sends viewers away, and leaves sandboxes running", async () => {
    await using bed = await ServerBed.start({ driver: "local" });
    const id = await bed.sandbox();
    const { json } = await bed.sh(id, "echo up; sleep 600", { background: true, id: "long" });
    expect(json.status).toBe("running");
    const stream = await bed.fetch(`/api/sandbox/${id}/exec/long/stream`);
    const viewer = readEvents(stream);
    const socket = bed.socket(`/api/sandbox/${id}/exec/long/ws`);
    await once(socket, "open");
    const left = once(socket, "close");
    const running = bed.sh(id, "touch begun; while [ ! -e go ]; do sleep 0.02; done; echo finished", {
      id: "short",
    });
    await until("it runs", async () => (await bed.get(`/api/sandbox/${id}/exec/short`)).status === 200);
    const exited = once(bed.child, "exit");
    bed.child.kill("SIGTERM");
    expect((await left)[0]).toBe(1001);
    expect((await viewer).map(({ event }) => event)).not.toContain("end");
    const go = await bed.aido("exec", id, "--", "touch", "go");
    expect(go.code).toBe(0);
    expect((await running).json).toMatchObject({ status: "success", stdout: "finished\n" });
    expect(await exited).toEqual([0, null]);
    await bed.start();
    expect((await bed.get(`/api/sandbox/${id}/exec/long`)).json).toMatchObject({
      status: "running",
      stdout: "up\n",
    });
  });

  test("asked twice, a server quits at once", async () => {
    await using bed = await ServerBed.start({ driver: "local" });
    const id = await bed.sandbox();
    const running = bed.sh(id, "sleep 600", { id: "long" }).catch(() => undefined);
    await until("it runs", async () => (await bed.get(`/api/sandbox/${id}/exec/long`)).status === 200);
    const exited = once(bed.child, "exit");
    bed.child.kill("SIGTERM");
    await until("it says so", () => bed.stderr.includes("Shutting down"));
    bed.child.kill("SIGTERM");
    const [, signal] = await exited;
    expect(signal).toBe("SIGTERM");
    await running;
  });

  test("a command goes on when the connection that asked for it is dropped, and its result is there", async () => {
    await using bed = await ServerBed.start({ driver: "local" });
    const id = await bed.sandbox();
    const { hostname, port } = new URL(bed.url);
    const script = "while [ ! -e go ]; do sleep 0.02; done; echo finished";
    const body = JSON.stringify({ containerId: id, command: ["sh", "-c", script] });
    const socket = connect(Number(port), hostname);
    socket.write(
      `POST /api/sandbox/exec HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    const execs = async () => (await bed.get(`/api/sandbox/${id}/exec`)).json.execs;
    await until("it runs", async () => (await execs()).length === 1);
    socket.destroy();
    const [{ id: execId }] = await execs();
    await bed.sh(id, "touch go");
    expect((await bed.get(`/api/sandbox/${id}/exec/${execId}?wait=20000`)).json).toMatchObject({
      status: "success",
      stdout: "finished\n",
    });
  });

  test("a key that was sent to a server that died finds its command at the next one", async () => {
    await using bed = await ServerBed.start({ driver: "local" });
    const id = await bed.sandbox();
    const script = "echo run >> runs; while [ ! -e go ]; do sleep 0.02; done; cat runs";
    const ask = (command: string) =>
      bed.call(
        "POST",
        "/api/sandbox/exec",
        { containerId: id, command: ["sh", "-c", command] },
        { "idempotency-key": "once" },
      );
    const broken = ask(script).catch(() => undefined);
    await until("it runs", async () => (await bed.get(`/api/sandbox/${id}/exec`)).json.execs.length === 1);
    await bed.kill();
    await broken;
    await bed.start();
    const again = ask(script);
    expect((await ask("true")).json.error.code).toBe("EXECUTION_CONFLICT");
    await bed.sh(id, "touch go");
    expect((await again).json).toMatchObject({ status: "success", stdout: "run\n" });
  });

  test("half a body does no harm", async () => {
    await using bed = await ServerBed.start({ driver: "local" });
    const id = await bed.sandbox();
    const { hostname, port } = new URL(bed.url);
    const sends = [
      `POST /api/sandbox/exec HTTP/1.1\r\nhost: localhost\r\ncontent-length: 500\r\n\r\n{"containerId":"${id}",`,
      `PUT /api/sandbox/${id}/files?path=half HTTP/1.1\r\nhost: localhost\r\ncontent-length: 50000\r\n\r\nonly this`,
      `POST /api/sandbox HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{"ima`,
      "GET /hea",
    ];
    for (const text of sends) {
      const socket = connect(Number(port), hostname);
      await once(socket, "connect");
      await new Promise<void>((resolve, reject) => {
        socket.write(text, (error) => (error ? reject(error) : resolve()));
      });
      socket.destroy();
    }
    expect((await bed.sh(id, "ls half 2>&1; echo fine")).json.stdout).toContain("fine\n");
    expect((await bed.get(`/api/sandbox/${id}/files?path=half`)).status).toBe(404);
    expect((await bed.get("/api/sandbox")).json.sandboxes).toHaveLength(1);
    expect(bed.stderr).not.toContain("INTERNAL_SERVER_ERROR");
  });

  test("a viewer that does not read costs no memory, and the command goes on", async () => {
    await using bed = await ServerBed.start({ driver: "local" });
    const id = await bed.sandbox({ history: false });
    const size = 200 * MIB;
    // What a first flood costs is what any costs.
    await bed.sh(id, `head -c ${20 * MIB} /dev/zero`);
    const before = bed.rss();
    const { json } = await bed.sh(id, `while [ ! -e go ]; do sleep 0.02; done; head -c ${size} /dev/zero`, {
      background: true,
    });
    const { hostname, port } = new URL(bed.url);
    const lazy = ["stream", "stream", "stream"].map((kind) => {
      const socket = connect(Number(port), hostname);
      socket.pause();
      socket.write(`GET /api/sandbox/${id}/exec/${json.id}/${kind} HTTP/1.1\r\nhost: localhost\r\n\r\n`);
      return socket;
    });
    const paused = bed.socket(`/api/sandbox/${id}/exec/${json.id}/ws`);
    await once(paused, "open");
    paused.pause();
    await bed.sh(id, "touch go");
    let most = before;
    await until(
      "the command ends though nobody reads",
      async () => {
        most = Math.max(most, bed.rss());
        return (
          (await bed.get(`/api/sandbox/${id}/exec/${json.id}?stdoutOffset=${size}`)).json.status === "success"
        );
      },
      90_000,
    );
    expect(most - before).toBeLessThan(150 * MIB);
    const late = new ExecViewer(bed, id, json.id, { stdout: size - 1000, stderr: 0 });
    await late.watch();
    expect(late.end).toMatchObject({ stdoutBytes: size });
    for (const socket of lazy) socket.destroy();
    paused.terminate();
  });

  test("another process that keeps the database locked gets a clear answer, not a hang", async () => {
    await using bed = await ServerBed.start({ driver: "local" });
    const { default: Database } = await import("libsql");
    const other = new Database(join(bed.dataDir, "aido.db"));
    try {
      other.exec("BEGIN IMMEDIATE");
      const reply = await bed.post("/api/sandbox", { image: "host" });
      expect(reply.status).toBe(503);
      expect(reply.json.error).toMatchObject({ code: "STORE_UNAVAILABLE", hint: expect.any(String) });
      const unready = await bed.get("/ready");
      expect(unready.status).toBe(503);
      expect(unready.json).toEqual({ status: "unavailable", failing: ["store"] });
      other.exec("ROLLBACK");
      expect((await bed.post("/api/sandbox", { image: "host" })).status).toBe(201);
    } finally {
      other.close();
    }
  });

  test("a port that is taken is told with what to do", async () => {
    await using bed = await ServerBed.start({ driver: "local" });
    const { port } = new URL(bed.url);
    const second = await bed.aido("serve", "--port", port);
    expect(second.code).not.toBe(0);
    expect(second.stderr).toContain("--port");
  });

  test("a command that floods its output ends at the limit and says so, in the background too", async () => {
    await using bed = await ServerBed.start({ driver: "local", env: { AIDO_LIMITS_OUTPUT: "3m" } });
    const id = await bed.sandbox();
    expect((await bed.get(`/api/sandbox/${id}`)).json.limits).toMatchObject({ outputBytes: 3 * MIB });
    const ended = await bed.sh(id, "yes");
    expect(ended.json).toMatchObject({ status: "error", error: expect.stringContaining("output limit") });
    await bed.sh(id, "yes", { background: true, id: "flood" });
    const state = await bed.get(`/api/sandbox/${id}/exec/flood?wait=30000&stdoutOffset=${3 * MIB}`);
    expect(state.json).toMatchObject({ status: "error", error: expect.stringContaining("output limit") });
    const { size } = statSync(join(bed.dataDir, "sandboxes", id, "execs", "flood", "stdout"));
    expect(size).toBe(3 * MIB);
  });

  test("a server for others needs keys", async () => {
    await using bed = await ServerBed.start({ driver: "local" });
    const open = await bed.aido("serve", "--host", "0.0.0.0", "--port", "0");
    expect(open.code).toBe(2);
    expect(open.stderr).toContain("aido key create");
  });

  test("a data directory that cannot be one is told at the start", async () => {
    const directory = mkdtempSync(join(tmpdir(), "aido-faults-"));
    try {
      mkdirSync(join(directory, "data"));
      writeFileSync(join(directory, "data", "aido.db"), "this is no database".repeat(1000));
      const failed = ServerBed.start({ driver: "local", dataDir: join(directory, "data") });
      await expect(failed).rejects.toThrow(/damaged or not a database/);
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });
});
