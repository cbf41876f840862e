import { describe, expect, test } from "vitest";
import { ApiBed } from "../../test/server/api-bed.ts";
import { gate } from "../../test/server/gate.ts";

describe("starting a command over HTTP", () => {
  test("a command in the background that does not read its input is answered at once, also when asked for again", async () => {
    await using bed = await ApiBed.open();
    const id = await bed.sandbox();
    const more = { id: "deaf", background: true, stdin: "x".repeat(200_000) };
    expect((await bed.exec(id, ["sleep", "600"], more)).status).toBe(202);
    expect((await bed.exec(id, ["sleep", "600"], more)).status).toBe(202);
    await bed.post(`/api/sandbox/${id}/exec/deaf/signal`, { signal: "KILL" });
    expect((await bed.get(`/api/sandbox/${id}/exec/deaf?wait=10000`)).json.state).toBe("killed");
  });

  test("input is given beside a command in the background, whole and to its end", async () => {
    const { released, release } = gate();
    await using bed = await ApiBed.open({
      programs: {
        late: async (process) => {
          await released;
          let bytes = 0;
          for await (const chunk of process.stdin) bytes += chunk.length;
          await process.stdout(String(bytes));
          return 0;
        },
      },
    });
    const id = await bed.sandbox();
    const { json } = await bed.exec(id, ["late"], { background: true, stdin: "x".repeat(600_000) });
    release();
    const ended = await bed.get(`/api/sandbox/${id}/exec/${json.id}?wait=10000`);
    expect(ended.json).toMatchObject({ status: "success", stdout: "600000" });
  });

  test("what a sandbox's commands leave unread is bounded, and free again when they end", async () => {
    await using bed = await ApiBed.open({ maxBodyBytes: 20 * 1024 * 1024 });
    const id = await bed.sandbox();
    const unread = { id: "deaf", background: true, stdin: "x".repeat(16 * 1024 * 1024) };
    expect((await bed.exec(id, ["sleep", "600"], unread)).status).toBe(202);
    const refused = await bed.exec(id, ["cat"], { stdin: "more" });
    expect(refused.status).toBe(429);
    expect(refused.json.error.code).toBe("QUOTA_EXCEEDED");
    expect((await bed.exec(id, ["true"])).json.status).toBe("success");
    expect((await bed.exec(await bed.sandbox(), ["cat"], { stdin: "more" })).json.stdout).toBe("more");
    await bed.post(`/api/sandbox/${id}/exec/deaf/signal`, { signal: "KILL" });
    await bed.get(`/api/sandbox/${id}/exec/deaf?wait=10000`);
    expect((await bed.exec(id, ["cat"], { stdin: "more" })).json.stdout).toBe("more");
  });

  test.each<[string, object]>([
    ["environment", { env: { A: "2", B: "1" } }],
    ["working directory", { cwd: "/" }],
    ["input", { stdin: "other" }],
    ["files", { files: { f: "other" } }],
    ["time limit", { timeout: 1000 }],
  ])("an id that is sent again with another %s is refused", async (_, change) => {
    await using bed = await ApiBed.open();
    const id = await bed.sandbox();
    const first = { id: "same", stdin: "in", env: { A: "1", B: "1" }, files: { f: "1", g: "2" } };
    expect((await bed.exec(id, ["cat"], first)).status).toBe(200);
    const other = await bed.exec(id, ["cat"], { ...first, ...change });
    expect(other.status).toBe(409);
    expect(other.json.error.code).toBe("EXECUTION_CONFLICT");
    const again = { ...first, background: true, env: { B: "1", A: "1" }, files: { g: "2", f: "1" } };
    expect((await bed.exec(id, ["cat"], again)).status).toBe(202);
  });

  test("a client that leaves while its command starts does not end it", async () => {
    const client = new AbortController();
    const { released, release } = gate();
    await using bed = await ApiBed.open({
      programs: {
        slow: async (process) => {
          // The word that it has started is still on its way.
          client.abort();
          await released;
          await process.stdout("done");
          return 0;
        },
      },
    });
    const id = await bed.sandbox();
    const body = { containerId: id, command: ["slow"] };
    const left = await bed.post("/api/sandbox/exec", body, { signal: client.signal });
    expect(left.json.error.code).toBe("CANCELLED");
    release();
    const [exec] = (await bed.get(`/api/sandbox/${id}/exec`)).json.execs;
    const ended = await bed.get(`/api/sandbox/${id}/exec/${exec.id}?wait=10000`);
    expect(ended.json).toMatchObject({ status: "success", stdout: "done" });
  });
});
