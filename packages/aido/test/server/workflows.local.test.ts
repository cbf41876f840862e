import { describe, expect, test } from "vitest";
import { ServerBed, until } from "./server-bed.ts";

const start = (env: Record<string, string> = {}) =>
  ServerBed.start({
    driver: "local",
    env: { SIDECAR_IMAGE: "host", WORKFLOW_CRON_SCHEDULE: "* * * * * *", ...env },
  });

async function sandboxes(bed: ServerBed): Promise<string[]> {
  const { stdout } = await bed.aido("ls", "--json", "--server", bed.url);
  return (JSON.parse(stdout) as { id: string }[]).map(({ id }) => id);
}

describe("workflows of the server, with the local driver", () => {
  test("S2-9 S2-40 S2-123 a schedule runs in a real sandbox that is gone afterwards, with its output kept", async () => {
    await using bed = await start();
    const create = ["workflow", "create", "often", "--cron", "* * * * * *", "--server", bed.url];
    const made = await bed.aido(...create, "--command", "echo made > f", "--command", "cat f; pwd", "--json");
    expect(made.stderr).toBe("");
    const { workflowId } = JSON.parse(made.stdout);
    const runs = async () => (await bed.get(`/api/workflows/${workflowId}/runs`)).json.runs;
    const ended = async () =>
      (await runs()).filter(({ state }: { state: string }) => state === "done" || state === "failed");
    await until("it has run twice", async () => (await ended()).length >= 2);
    const cancelled = await bed.aido("workflow", "cancel", String(workflowId), "--server", bed.url);
    expect(cancelled.stdout).toBe(`Workflow ${workflowId} is cancelled\n`);
    const done = await ended();
    for (const run of done) {
      expect(run).toMatchObject({ state: "done", trigger: "cron", task: { result: "made\n/home/agent\n" } });
      expect(run.evidence.hash).toMatch(/^[0-9a-f]{64}$/);
    }
    expect(new Set(done.map(({ sandboxId }: { sandboxId: string }) => sandboxId)).size).toBe(done.length);
    expect(await sandboxes(bed)).toEqual([]);
    const listed = await bed.aido("workflow", "runs", String(workflowId), "--server", bed.url);
    expect(listed.stdout).toMatch(/run-\S+ +cron +done/);
  });

  test("S2-77 a prompt goes to the agent in the sandbox, and its steps share a session", async () => {
    const argv = [
      "sh",
      "-c",
      'echo >> turns; echo "$1, turn $(wc -l < turns | tr -d " ")"',
      "agent",
      "{message}",
    ];
    const agents = JSON.stringify({ scripted: { kind: "command", argv } });
    await using bed = await start({ AIDO_AGENTS: agents });
    const steps = [{ prompt: "one" }, { prompt: "two" }, { command: "wc -l < turns" }];
    const body = {
      workflow_json: JSON.stringify({ steps }),
      sandbox_config_json: JSON.stringify({ agent_identifier: "scripted" }),
    };
    const { workflowId } = (await bed.post("/api/jobs/30", body)).json;
    const command = ["workflow", "trigger", String(workflowId), "--json", "--server", bed.url];
    const { stdout, stderr, code } = await bed.aido(...command);
    expect(stderr).toBe("");
    expect(code).toBe(0);
    const { status, task, steps: done } = JSON.parse(stdout);
    expect(status).toBe("completed");
    expect(task).toMatchObject({ success: true, traceId: expect.stringMatching(/./) });
    const results = done.map(({ result }: { result: string }) => result.trim());
    expect(results).toEqual(["one, turn 1", "two, turn 2", "2"]);
    expect(done[1].sessionId).toBe(done[0].sessionId);
    expect(await sandboxes(bed)).toEqual([]);
  });

  test("S2-39 after the server was killed its run is lost, its sandbox removed, and the schedule goes on", async () => {
    await using bed = await start();
    const { sidecarUrl, token, sandboxId } = (await bed.post("/api/jobs/0", {})).json;
    const exec = async (command: string) =>
      (await bed.post("/api/jobs/10", { sidecar_url: sidecarUrl, sidecar_token: token, command })).json;
    const own = { workflow_json: JSON.stringify({ command: "sleep 600", timeout_ms: 900_000 }) };
    const kept = {
      workflow_json: JSON.stringify({
        sidecar_url: sidecarUrl,
        sidecar_token: token,
        command: "echo ran >> runs; [ -e go ] || sleep 600",
        timeout_ms: 900_000,
      }),
      trigger_type: "cron",
      trigger_config: "* * * * * *",
    };
    expect((await bed.post("/api/jobs/30", own)).json).toMatchObject({ workflowId: 1 });
    expect((await bed.post("/api/jobs/30", kept)).json).toMatchObject({ workflowId: 2 });
    const asked = bed.post("/api/jobs/31", { workflow_id: 1 }).catch(() => undefined);
    const first = async (id: number) =>
      (await bed.get(`/api/workflows/${id}/runs?limit=100`)).json.runs.at(-1);
    await until("both are at work", async () => {
      const at = await first(1);
      return at?.sandboxId !== undefined && (await exec("cat runs")).stdout === "ran\n";
    });
    await bed.kill();
    await asked;
    await bed.start();
    expect(await first(1)).toMatchObject({
      state: "lost",
      error: { message: expect.stringContaining("ended") },
    });
    expect(await first(2)).toMatchObject({ state: "lost" });
    expect(await sandboxes(bed)).toEqual([sandboxId]);
    // Twice would be two lines: the run that was lost is not begun again, and the next waits for its time.
    expect((await exec("cat runs; touch go")).stdout).toBe("ran\n");
    const { failures, nextRunAt } = (await bed.get("/api/workflows/2")).json;
    expect(failures).toBe(1);
    expect(Date.parse(nextRunAt)).toBeGreaterThan(Date.now());
    const again = await bed.post("/api/jobs/31", { workflow_id: 2 });
    expect(again.json).toMatchObject({ status: "completed" });
    expect((await exec("cat runs")).stdout).toBe("ran\nran\n");
  });

  test("S2-123 a schedule that is wrong keeps the server from starting, and says why", async () => {
    await expect(start({ WORKFLOW_CRON_SCHEDULE: "* * * * *" })).rejects.toThrow(/has 5 fields, not six/);
  });
});
