import { writeFramedBody } from "@aido/sdk";
import { describe, expect, test } from "vitest";
import { ApiBed } from "../../test/server/api-bed.ts";
import { FAKE_SHELL } from "../../test/server/fake-shell.ts";
import type { Operation } from "./operation.ts";

interface Asked {
  /** In place of the path's own parameter. */
  part?: string;
  query?: string;
  body?: object;
  raw?: Uint8Array;
}

/** What one caller has, every name of which another one knows. */
async function things(bed: ApiBed, key: string) {
  const box = await bed.sandbox(key, { name: "box", workspace: "data" });
  await bed.exec(box, ["put", "f", "x"], { id: "first" }, key);
  const { json: sidecar } = await bed.post("/api/jobs/SANDBOX_CREATE", {}, { key });
  const { json: batch } = await bed.post("/api/jobs/BATCH_CREATE", { count: 1 }, { key });
  const workflow_json = JSON.stringify({ steps: [{ command: "echo hi" }] });
  const { json: workflow } = await bed.post(
    "/api/jobs/WORKFLOW_CREATE",
    { name: "adas-own", workflow_json },
    { key },
  );
  const { json: image } = await bed.post(
    "/api/images",
    { base: "debian:12", packages: { apt: ["jq"] } },
    { key },
  );
  const run = await bed.client(key).runs.up({ spec: SPEC, specText: "name: demo\n", inputs: [] });
  await bed.get("/api/audit", { key });
  return {
    box,
    sidecar: String(sidecar.sandboxId),
    token: String(sidecar.token),
    batch: String(batch.batchId),
    workflow: Number(workflow.workflowId),
    image: String(image.ref),
    run: run.id,
  };
}

type Things = Awaited<ReturnType<typeof things>>;

const SPEC = {
  ...{ name: "demo", runtime: "bash", ttlMs: 60_000, inputs: [], outputs: [], limits: {} },
  ...{ timeoutMs: 0, env: {}, network: "none" as const, steps: [] },
};

/** How each operation is asked for what is somebody else's; nothing of a kind can be told from none of it. */
async function attempts(of: Things): Promise<Record<string, Asked[]>> {
  const path = { query: "?path=f" };
  const raw = new Uint8Array(1024);
  const job = (part: string, body: object) => ({ part, body });
  const start = writeFramedBody({ sandbox: of.run, task: { path: "t.sh" } }, []);
  return {
    createSandbox: [{ body: { image: of.image } }],
    stopSandbox: [{ body: {} }],
    setSandboxTimeout: [{ body: { timeout: 0 } }],
    issueSandboxToken: [{ body: {} }],
    exec: [of.box, "box"].map((containerId) => ({ body: { containerId, command: ["true"] } })),
    signalExec: [{ body: {} }],
    resizeExec: [{ body: { rows: 1, cols: 1 } }],
    writeExecStdin: [{ raw }],
    readFile: [path],
    writeFile: [{ ...path, raw }],
    removeFile: [path],
    listFiles: [path],
    statFile: [path],
    moveFile: [{ body: { from: "f", to: "g" } }],
    makeDirectory: [{ body: { path: "d" } }],
    downloadTree: [path],
    uploadTree: [{ ...path, raw }],
    watchFiles: [path],
    readWorkspaceFile: [{ query: "?filePath=f" }],
    writeWorkspaceFiles: [{ body: { containerId: of.box, files: { f: "x" } } }],
    runAgent: [{ body: { message: "m" } }],
    streamAgent: [{ body: { message: "m" } }],
    cancelAgent: [{ body: {} }],
    diff: [{ body: { fromExecId: "unknown", toExecId: "first" } }],
    rollback: [{ body: { executionId: "unknown" } }],
    historyFile: [path],
    takeSnapshot: [{ body: {} }],
    restoreSnapshot: [{ body: { url: "s3://bucket/x" } }],
    startRun: [{ raw: await whole(start) }],
    readRunOutput: [path],
    addSshKey: [{ body: { publicKey: "ssh-ed25519 AAAA" } }],
    removeSshKey: [{ query: "?key=SHA256:x" }],
    runJob: [
      job("SANDBOX_CREATE", { image: of.image }),
      job("SANDBOX_STOP", { sandboxId: of.sidecar }),
      job("SANDBOX_RESUME", { sandboxId: of.sidecar }),
      job("SANDBOX_DELETE", { sandboxId: of.sidecar }),
      job("EXEC", { sidecarUrl: of.sidecar, sidecarToken: of.token, command: "ls" }),
      job("BATCH_COLLECT", { batchId: of.batch }),
      job("WORKFLOW_TRIGGER", { workflowId: of.workflow }),
      job("WORKFLOW_CANCEL", { workflowId: of.workflow }),
    ],
    makeImage: [{ body: { pull: of.image } }],
  };
}

async function whole(parts: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const kept: Uint8Array[] = [];
  for await (const part of parts) kept.push(part);
  return Buffer.concat(kept);
}

/** Lists and numbers of everybody, in which nothing of somebody else's may be seen. */
const SHARED: ReadonlySet<string> = new Set([
  ...["listSandboxes", "listAgents", "listJobs", "listBatches", "listWorkflows", "listImages"],
  ...["listWorkspaces", "listAudit", "server", "metrics", "counters"],
]);
/** Makes something for whoever asks; a socket, which is refused before it is one, has tests of its own. */
const OF_NOBODY = new Set(["prepareRun", "openExecSocket"]);

function pathOf({ path }: Operation, of: Things, { part, query = "" }: Asked): string {
  const named: Record<string, string | number> = {
    ...{ containerId: of.box, sandboxId: of.sidecar, execId: "first", run: of.run, port: 80 },
    ...{ batchId: of.batch, workflowId: of.workflow, ref: encodeURIComponent(of.image), name: "data" },
    ...{ terminalId: "none", id: part ?? "SANDBOX_STOP" },
  };
  return path.replace(/:(\w+)/g, (_, name: string) => String(named[name])) + query;
}

const open = () =>
  ApiBed.open({
    guarded: true,
    imageBuilders: "write",
    images: ["debian:12", "ubuntu:22.04", "bash:5"],
    programs: FAKE_SHELL,
  });

describe("every operation there is", () => {
  test("S3-40 S3-44 keeps what is somebody else's from whoever asks, though they know its name", async () => {
    await using bed = await open();
    const [mine, other] = [await bed.key("ada"), await bed.key("eve")];
    const of = await things(bed, mine);
    const asked = await attempts(of);
    const names = [of.box, of.sidecar, of.batch, of.image, of.run, "adas-own"];
    const guarded = bed.operations.filter(({ scope }) => scope === "read" || scope === "write");
    // The audit log before the rest: it will have what the caller has typed.
    const isShared = ({ id }: Operation) => Number(SHARED.has(id));
    for (const operation of guarded.toSorted((a, b) => isShared(b) - isShared(a))) {
      if (OF_NOBODY.has(operation.id)) continue;
      for (const one of asked[operation.id] ?? [{}]) {
        const { part: _part, query: _query, ...request } = one;
        const method = operation.method.toUpperCase();
        const reply = await bed.call(method, pathOf(operation, of, one), { key: other, ...request });
        const told = [operation.id, one.part, reply.status];
        if (!SHARED.has(operation.id)) expect(told).toEqual([operation.id, one.part, 404]);
        else for (const name of names) expect(`${told}: ${reply.text}`).not.toContain(name);
      }
    }
    for (const id of [of.box, of.sidecar, of.run]) {
      expect((await bed.aido.sandboxes.get(id)).state).not.toBe("deleted");
    }
    const tree = await bed.get(`/api/sandbox/${of.box}/files/list`, { key: mine });
    expect(tree.json.files.map((file: { path: string }) => file.path).sort()).toEqual(["README.md", "f"]);
  });

  test("S3-44 wants a key, and one with the scope it names", async () => {
    await using bed = await open();
    const of = await things(bed, await bed.key("ada"));
    const reader = await bed.key("reader", { scopes: ["read"] });
    const writer = await bed.key("writer", { scopes: ["write"] });
    for (const operation of bed.operations.filter(({ scope }) => scope !== "public")) {
      const ask = async (key?: string) => {
        const reply = await bed.call(operation.method.toUpperCase(), pathOf(operation, of, {}), { key });
        return [operation.id, reply.status];
      };
      expect(await ask()).toEqual([operation.id, 401]);
      const isSidecars = operation.scope === "sandbox";
      expect(await ask("aido_aaaaaaaa_")).toEqual([operation.id, isSidecars ? 403 : 401]);
      if (!isSidecars) expect(await ask(of.token)).toEqual([operation.id, 401]);
      if (operation.scope !== "read") expect(await ask(reader)).toEqual([operation.id, 403]);
      if (operation.scope !== "write") expect(await ask(writer)).toEqual([operation.id, 403]);
    }
  });

  test("S2-72 below a sandbox's sidecar address wants that sandbox's own token", async () => {
    await using bed = await open();
    const key = await bed.key("ada", { scopes: ["admin"] });
    const of = await things(bed, key);
    const others = await bed.post("/api/jobs/SANDBOX_CREATE", {}, { key });
    for (const operation of bed.operations.filter(({ scope }) => scope === "sandbox")) {
      for (const secret of [key, String(others.json.token)]) {
        const reply = await bed.call(operation.method.toUpperCase(), pathOf(operation, of, {}), {
          key: secret,
        });
        expect([operation.id, reply.status]).toEqual([operation.id, 403]);
      }
    }
  });
});
