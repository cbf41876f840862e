import { describe, expect, test } from "vitest";
import { ApiBed } from "../../test/server/api-bed.ts";
import { HttpMetrics } from "./metrics.ts";

interface Document {
  openapi: string;
  info: { title: string; version: string };
  paths: Record<string, Record<string, DocumentedOperation>>;
  components: { schemas: Record<string, object> };
}
interface DocumentedOperation {
  operationId: string;
  parameters: { name: string; in: string; required: boolean; schema: object }[];
  requestBody?: { required: boolean; content: Record<string, unknown> };
  responses: Record<string, { description: string }>;
  security: object[];
}

describe("the server about itself", () => {
  test("S3-75 S3-77 it says that it lives and that it is ready", async () => {
    await using bed = await ApiBed.open();
    expect((await bed.get("/health")).json).toEqual({ status: "ok", version: "1.2.3" });
    expect((await bed.get("/ready")).json).toEqual({ status: "ok" });
  });

  test("S3-60 S3-64 S3-73 S3-74 it counts requests, errors and durations by operation", async () => {
    await using bed = await ApiBed.open();
    await bed.exec(await bed.sandbox(), ["true"]);
    await bed.get("/api/sandbox/nope");
    const { text, headers } = await bed.get("/metrics");
    expect(headers.get("content-type")).toContain("text/plain");
    expect(text).toContain('aido_http_requests_total{operation="exec",status="200"} 1');
    expect(text).toContain('aido_errors_total{code="CONTAINER_NOT_FOUND"} 1');
    expect(text).toMatch(/aido_http_request_duration_seconds_bucket\{operation="exec",le="\+Inf"\} 1/);
    expect(text).toContain("aido_event_loop_lag_seconds ");
    for (const line of text.trim().split("\n"))
      expect(line).toMatch(/^(# (HELP|TYPE) |[a-z_][a-z0-9_]*(\{[^}]*\})? [-+.\de]+$)/);
  });

  test("it counts commands by how they ended, times them, and knows how many run", async () => {
    await using bed = await ApiBed.open();
    const id = await bed.sandbox();
    await bed.exec(id, ["true"]);
    await bed.exec(id, ["false"]);
    await bed.exec(id, ["sleep", "600"], { timeout: 20 });
    const { json } = await bed.exec(id, ["sleep", "600"], { background: true });
    const before = (await bed.get("/metrics")).text;
    expect(before).toContain('aido_execs_total{status="exited"} 2');
    expect(before).toContain('aido_execs_total{status="timeout"} 1');
    expect(before).toContain("aido_execs_running 1");
    expect(before).toContain('aido_exec_duration_seconds_bucket{le="+Inf"} 3');
    expect(before).toContain("aido_exec_duration_seconds_count 3");
    await bed.post(`/api/sandbox/${id}/exec/${json.id}/signal`, { signal: "KILL" });
    await bed.get(`/api/sandbox/${id}/exec/${json.id}?wait=10000`);
    const after = (await bed.get("/metrics")).text;
    expect(after).toContain('aido_execs_total{status="killed"} 1');
    expect(after).toContain("aido_execs_running 0");
  });

  test("S3-71 it counts sandboxes by their state", async () => {
    await using bed = await ApiBed.open();
    const [, second, third] = [await bed.sandbox(), await bed.sandbox(), await bed.sandbox()];
    await bed.post(`/api/sandbox/${second}/stop`, {});
    await bed.call("DELETE", `/api/sandbox/${third}`);
    const { text } = await bed.get("/metrics");
    expect(text).toContain('aido_sandboxes{state="running"} 1\n');
    expect(text).toContain('aido_sandboxes{state="stopped"} 1\n');
  });

  test("every number has a type, and all of one name stand together", async () => {
    const pool = { 'aido_pool_ready{image="a"}': 1, 'aido_pool_claims_total{image="a"}': 2 };
    const other = { 'aido_pool_ready{image="b"}': 3, 'aido_pool_claims_total{image="b"}': 4 };
    const metrics = new HttpMetrics(
      async () => ({ ...pool, ...other }),
      async () => ({ active_sandboxes: 1 }),
    );
    metrics.request("exec", 200, 5, undefined);
    const lines = (await metrics.render()).trim().split("\n");
    metrics.close();
    const groups: string[] = [];
    let type = "";
    for (const line of lines) {
      const [, name, kind] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? [];
      if (name !== undefined) {
        groups.push(name);
        type = kind ?? "";
      } else if (!line.startsWith("#")) {
        const base = line.replace(/[{ ].*/, "");
        expect(type === "histogram" ? base.replace(/_(bucket|sum|count)$/, "") : base).toBe(groups.at(-1));
      }
    }
    expect(new Set(groups).size).toBe(groups.length);
    expect(lines).toContain("# TYPE aido_pool_ready gauge");
    expect(lines).toContain("# TYPE aido_pool_claims_total counter");
  });

  test("S3-9 the OpenAPI document has every operation, and all it refers to", async () => {
    await using bed = await ApiBed.open();
    const document = (await bed.get("/openapi.json")).json as Document;
    expect(document.openapi).toBe("3.1.0");
    const ids = new Set<string>();
    for (const { id, method, path, scope, body } of bed.operations) {
      const documented = document.paths[path.replace(/:(\w+)/g, "{$1}")]?.[method];
      expect(documented?.operationId).toBe(id);
      if (documented === undefined) continue;
      ids.add(documented.operationId);
      const names = [...path.matchAll(/:(\w+)/g)].map((match) => match[1]);
      const inPath = documented.parameters.filter((parameter) => parameter.in === "path");
      expect(inPath.map(({ name, required }) => [name, required])).toEqual(names.map((name) => [name, true]));
      const secret = scope === "sandbox" ? { sandboxToken: [] } : { bearer: [] };
      expect(documented.security).toEqual(scope === "public" ? [] : [secret]);
      expect(documented.requestBody?.content["application/json"] !== undefined).toBe(body !== undefined);
      for (const response of Object.values(documented.responses)) expect(response.description).not.toBe("");
    }
    expect(ids.size).toBe(bed.operations.length);
    expect(document.paths["/api/sandbox"]?.["post"]?.requestBody?.required).toBe(false);
    expect(document.paths["/api/sandbox/exec"]?.["post"]?.requestBody?.required).toBe(true);
    for (const [, reference] of JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)) {
      const target = (reference ?? "")
        .replace(/^#\//, "")
        .split("/")
        .reduce<unknown>((at, name) => (at as Record<string, unknown> | undefined)?.[name], document);
      expect([reference, typeof target]).toEqual([reference, "object"]);
    }
  });

  test("the page shows every operation and loads nothing", async () => {
    await using bed = await ApiBed.open();
    const { text, headers } = await bed.get("/docs");
    expect(headers.get("content-type")).toContain("text/html");
    expect(headers.get("content-security-policy")).toContain("default-src 'none'");
    for (const { path } of bed.operations) expect(text).toContain(`<code>${path}</code>`);
    expect(text).not.toMatch(/<script|src=|https?:\/\//);
  });

  test("S3-23 S3-24 S3-25 history, difference and the way back", async () => {
    await using bed = await ApiBed.open();
    const id = await bed.sandbox();
    const one = await bed.exec(id, ["cat", "index.js"], { files: { "index.js": "one\n" } });
    const two = await bed.exec(id, ["cat", "index.js"], { files: { "index.js": "two\n" } });
    const { history } = (await bed.get(`/api/sandbox/${id}/history`)).json;
    expect(history.map((entry: { id: string }) => entry.id)).toEqual([two.json.id, one.json.id, "unknown"]);
    expect(history[0]).toMatchObject({
      commitId: expect.stringMatching(/^[0-9a-f]{40}$/),
      message: "Update files for sandbox execution",
      files: ["index.js"],
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/),
    });
    expect(history[2]).toMatchObject({ message: "Initial commit", files: ["README.md"] });
    const pair = { fromExecId: one.json.id, toExecId: two.json.id };
    const { diff } = (await bed.post(`/api/sandbox/${id}/diff`, pair)).json;
    expect(diff["index.js"]).toMatch(/^diff --git a\/index\.js b\/index\.js\n[\s\S]*-one\n\+two\n$/);
    const back = await bed.post(`/api/sandbox/${id}/rollback`, { executionId: one.json.id });
    expect(back.json).toMatchObject({ status: "success", message: expect.any(String) });
    expect((await bed.exec(id, ["cat", "index.js"])).json.stdout).toBe("one\n");
    const tree = await bed.get(`/api/sandbox/${id}/history/${two.json.id}/tree`);
    expect(tree.json.tree).toMatchObject([{ path: "README.md" }, { path: "index.js", type: "file" }]);
    expect((await bed.get(`/api/sandbox/${id}/history/${two.json.id}/file?path=index.js`)).text).toBe(
      "two\n",
    );
    for (const body of [{ executionId: "nope" }, { executionId: "" }]) {
      const refused = await bed.post(`/api/sandbox/${id}/rollback`, body);
      expect(refused.status).toBe(body.executionId === "" ? 400 : 404);
    }
    expect((await bed.post(`/api/sandbox/${id}/diff`, { fromExecId: "a", toExecId: "b" })).status).toBe(404);
    expect((await bed.get(`/api/sandbox/${id}/history?limit=0`)).status).toBe(400);
  });

  test("history is read in pages, over HTTP and by the client", async () => {
    await using bed = await ApiBed.open();
    const id = await bed.sandbox();
    for (const name of ["a", "b", "c"]) await bed.exec(id, ["true"], { id: name, files: { f: name } });
    const list = async (query: string) =>
      (await bed.get(`/api/sandbox/${id}/history${query}`)).json.history.map(
        (entry: { id: string }) => entry.id,
      );
    expect(await list("?limit=2")).toEqual(["c", "b"]);
    expect(await list("?limit=2&before=b")).toEqual(["a", "unknown"]);
    expect(await list("?before=unknown")).toEqual([]);
    expect((await bed.get(`/api/sandbox/${id}/history?before=nope`)).status).toBe(404);
    const page = await bed.client().history.list(id, { limit: 1, before: "c" });
    expect(page.map(({ execId }) => execId)).toEqual(["b"]);
  });
});
