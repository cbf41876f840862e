import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { ServerBed, until } from "./server-bed.ts";

const run = promisify(execFile);

/** Says how often it was asked; `fail` makes it fail. */
const AGENT = {
  kind: "command",
  argv: [
    "sh",
    "-c",
    'echo >> turns; [ "$1" = fail ] && exit 3; echo "$1, turn $(wc -l < turns | tr -d " ")"',
    "agent",
    "{message}",
  ],
};

/** Jobs and batches through the built server, with real sandboxes. */
export function jobsSuite(driver: "local" | "docker"): void {
  const start = (env: Record<string, string> = {}) =>
    ServerBed.start({
      driver,
      env: { SIDECAR_IMAGE: driver === "docker" ? "aido-test:python" : "host", ...env },
    });

  describe(`jobs of the server, with the ${driver} driver`, () => {
    test("S2-2 S2-8 S2-10 S2-15 S2-24 S2-48 create, exec, stop, resume and delete; files and token stay", async () => {
      await using bed = await start();
      const created = await bed.post("/api/jobs/0", { env_json: '{"GREETING":"hello"}', memory_mb: 256 });
      expect(created.status).toBe(200);
      const { sandboxId, sidecarUrl, token } = created.json;
      const exec = (command: string, sidecarToken = token) =>
        bed.post("/api/jobs/EXEC", { sidecar_url: sidecarUrl, sidecar_token: sidecarToken, command });
      expect((await exec('pwd; id -u; echo "$GREETING" > kept; cat kept')).json).toEqual({
        exitCode: 0,
        stdout: expect.stringMatching(/^\/home\/agent\n[1-9]\d*\nhello\n$/),
        stderr: "",
      });
      expect((await exec("echo out; echo err >&2; exit 7")).json).toEqual({
        exitCode: 7,
        stdout: "out\n",
        stderr: "err\n",
      });
      expect((await exec("true", "0".repeat(64))).status).toBe(403);
      if (driver === "docker") {
        const filter = `label=dev.aido.sandbox=${sandboxId}`;
        const { stdout } = await run("docker", ["ps", "-q", "--filter", filter]);
        expect(stdout.trim().split("\n")).toHaveLength(1);
      }
      expect((await bed.post("/api/jobs/1", { sandboxId })).json).toEqual({ sandboxId, stopped: true });
      expect((await exec("true")).json.error.code).toBe("CONTAINER_NOT_RUNNING");
      expect((await bed.post("/api/jobs/2", { sandboxId })).json).toEqual({ sandboxId, resumed: true });
      expect((await exec("cat kept")).json).toMatchObject({ exitCode: 0, stdout: "hello\n" });
      expect((await bed.post("/api/jobs/3", { sandboxId })).json).toEqual({ sandboxId, deleted: true });
      expect((await exec("true")).status).toBe(404);
      const { json } = await bed.get("/api/metrics");
      expect(json).toMatchObject({ total_jobs: 10, failed_jobs: 3, active_sandboxes: 0, peak_sandboxes: 1 });
    });

    test("S2-25 S2-26 S2-29 S2-30 S2-35 prompts and tasks go to the sandbox's agent, in sessions that go on", async () => {
      await using bed = await start({ AIDO_AGENTS: JSON.stringify({ scripted: AGENT }) });
      const template_request = { agent_identifier: "scripted" };
      const { sandboxes } = (await bed.post("/api/jobs/20", { count: 3, template_request })).json;
      const [{ sidecarUrl, token }] = sandboxes;
      const prompted = await bed.post("/api/jobs/11", {
        sidecar_url: sidecarUrl,
        sidecar_token: token,
        message: "one",
      });
      expect(prompted.json).toEqual({
        success: true,
        response: expect.stringContaining("one, turn 1"),
        error: "",
        traceId: expect.stringMatching(/./),
        durationMs: expect.any(Number),
        inputTokens: 0,
        outputTokens: 0,
      });
      const task = { sidecar_url: sidecarUrl, sidecar_token: token, max_turns: 4 };
      const first = (await bed.post("/api/jobs/12", { ...task, prompt: "two" })).json;
      expect(first).toMatchObject({
        success: true,
        result: expect.stringContaining("two, turn 2"),
        sessionId: expect.stringMatching(/./),
      });
      const session_id = first.sessionId;
      const second = (await bed.post("/api/jobs/12", { ...task, prompt: "three", session_id })).json;
      expect(second).toMatchObject({
        result: expect.stringContaining("three, turn 3"),
        sessionId: session_id,
      });
      const body = {
        sidecar_urls: sandboxes.map(({ sidecarUrl }: { sidecarUrl: string }) => sidecarUrl),
        sidecar_tokens: sandboxes.map(({ token }: { token: string }) => token),
        prompt: "all",
        parallel: true,
        aggregation: "majority",
      };
      const { taskResults, aggregate } = (await bed.post("/api/jobs/21", body)).json;
      expect(taskResults).toHaveLength(3);
      expect(aggregate).toEqual({
        aggregation: "majority",
        success: true,
        result: "all, turn 1",
        from: [1, 2],
      });
      const failing = await bed.post("/api/jobs/12", { ...task, prompt: "fail" });
      expect(failing.json).toMatchObject({ success: false, error: expect.stringMatching(/./) });
      expect((await bed.get("/api/metrics")).json).toMatchObject({ total_jobs: 6, failed_jobs: 1 });
    });

    test("S2-17 S2-23 S2-93 a snapshot goes beneath the operator's prefix, and is what its hash says", async () => {
      const place = mkdtempSync(join(tmpdir(), "aido-snapshots-"));
      try {
        await using bed = await start({ SANDBOX_SNAPSHOT_DESTINATION_PREFIX: `file://${place}/` });
        const { sandboxId, sidecarUrl, token } = (await bed.post("/api/jobs/0", {})).json;
        const sidecar = { sidecar_url: sidecarUrl, sidecar_token: token };
        await bed.post("/api/jobs/10", { ...sidecar, command: "echo kept > file" });
        const { json } = await bed.post("/api/jobs/4", { ...sidecar, include_workspace: true });
        expect(json).toMatchObject({
          sandboxId,
          bytes: expect.any(Number),
          createdAt: expect.stringMatching(/Z$/),
        });
        const object = readFileSync(fileURLToPath(json.url));
        expect(json.url).toContain(`${place}/${sandboxId}/`);
        expect(object.length).toBe(json.bytes);
        expect(createHash("sha256").update(object).digest("hex")).toBe(json.sha256);
        const neither = await bed.post("/api/jobs/4", sidecar);
        expect(neither.json.error.code).toBe("VALIDATION_ERROR");
      } finally {
        rmSync(place, { recursive: true, force: true });
      }
    });

    test("S2-31 S2-32 S2-33 a batch is made, used and collected, also from the command line", async () => {
      await using bed = await start();
      const { batchId, sandboxes } = (await bed.post("/api/jobs/20", { count: 4 })).json;
      expect(new Set(sandboxes.map(({ sandboxId }: { sandboxId: string }) => sandboxId)).size).toBe(4);
      const urls: string[] = sandboxes.map(({ sidecarUrl }: { sidecarUrl: string }) => sidecarUrl);
      const tokens: string[] = sandboxes.map(({ token }: { token: string }) => token);
      await bed.post("/api/jobs/10", {
        sidecar_url: urls[2],
        sidecar_token: tokens[2],
        command: "echo three > mark",
      });
      const body = { sidecar_urls: urls, sidecar_tokens: tokens, command: "cat mark", parallel: true };
      const { execResults } = (await bed.post("/api/jobs/22", body)).json;
      expect(execResults.map(({ exitCode }: { exitCode: number }) => exitCode)).toEqual([1, 1, 0, 1]);
      expect(execResults[2]).toMatchObject({ sidecarUrl: urls[2], stdout: "three\n" });
      const command = ["batch", "exec", "--label", `batch=${batchId}`, "echo here", "--server", bed.url];
      const { code, stdout, stderr } = await bed.aido(...command);
      expect(stderr).toBe("");
      expect(code).toBe(0);
      expect(stdout.match(/^here$/gm)).toHaveLength(4);
      const collected = await bed.aido("batch", "collect", batchId, "--json", "--server", bed.url);
      expect(JSON.parse(collected.stdout)).toMatchObject({ batchId, kind: "create", results: { length: 4 } });
    });

    test("S2-33 S2-78 after the server was killed its batch is lost, nothing ran twice, and the counts are right", async () => {
      await using bed = await start();
      const { sandboxes } = (await bed.post("/api/jobs/20", { count: 2 })).json;
      const urls: string[] = sandboxes.map(({ sidecarUrl }: { sidecarUrl: string }) => sidecarUrl);
      const command = "echo ran >> runs; if [ -e second ]; then sleep 600; fi";
      await bed.post("/api/jobs/10", { sidecar_url: urls[1], command: "touch second" });
      const body = { sidecar_urls: urls, command, batch_id: "batch-cut" };
      const asked = bed.post("/api/jobs/22", body).catch(() => undefined);
      await until(
        "the first part has ended",
        async () => (await bed.get("/api/batches/batch-cut")).json.ended === 1,
      );
      await until("the second part is at work", async () => {
        const { stdout } = (await bed.post("/api/jobs/10", { sidecar_url: urls[1], command: "cat runs" }))
          .json;
        return stdout === "ran\n";
      });
      const before = (await bed.get("/api/metrics")).json;
      await bed.kill();
      await asked;
      await bed.start();
      const after = (await bed.get("/api/metrics")).json;
      expect(after.total_jobs).toBe(before.total_jobs + 1);
      expect(after.failed_jobs).toBe(before.failed_jobs + 1);
      expect(after).toMatchObject({ active_sandboxes: 2, peak_sandboxes: 2, active_sessions: 0 });
      expect((await bed.get("/api/batches/batch-cut")).json).toMatchObject({ state: "lost", ended: 1 });
      const again = await bed.post("/api/jobs/22", body);
      expect(again.json.execResults).toEqual([
        { sidecarUrl: urls[0], exitCode: 0, stdout: "", stderr: "" },
        { error: expect.objectContaining({ message: expect.stringContaining("server ended") }) },
      ]);
      for (const sidecar_url of urls) {
        const { stdout } = (await bed.post("/api/jobs/10", { sidecar_url, command: "cat runs" })).json;
        expect(stdout).toBe("ran\n");
      }
      expect((await bed.post("/api/jobs/23", { batch_id: "batch-cut" })).json.results).toHaveLength(2);
    });
  });
}
