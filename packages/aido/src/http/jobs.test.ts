import { AidoError, JOB_NAMES, JOBS } from "@aido/sdk/protocol";
import { describe, expect, test } from "vitest";
import { ApiBed, type ApiBedOptions } from "../../test/server/api-bed.ts";
import { FAKE_SHELL } from "../../test/server/fake-shell.ts";

const open = (options: ApiBedOptions = {}) => ApiBed.open({ programs: FAKE_SHELL, ...options });

describe("jobs over HTTP", () => {
  test("S2-7 S2-19 S2-20 S2-21 S2-22 S2-23 S2-28 S2-29 S2-30 S2-34 S2-35 S2-36 S2-37 S2-46 S2-47 there are 18, by their numbers", async () => {
    await using bed = await open();
    const { status, json } = await bed.get("/api/jobs");
    expect(status).toBe(200);
    const listed = json.jobs.map(({ id, name }: { id: number; name: string }) => [id, name]);
    expect(listed).toEqual([
      [0, "SANDBOX_CREATE"],
      [1, "SANDBOX_STOP"],
      [2, "SANDBOX_RESUME"],
      [3, "SANDBOX_DELETE"],
      [4, "SANDBOX_SNAPSHOT"],
      [10, "EXEC"],
      [11, "PROMPT"],
      [12, "TASK"],
      [20, "BATCH_CREATE"],
      [21, "BATCH_TASK"],
      [22, "BATCH_EXEC"],
      [23, "BATCH_COLLECT"],
      [30, "WORKFLOW_CREATE"],
      [31, "WORKFLOW_TRIGGER"],
      [32, "WORKFLOW_CANCEL"],
      [33, "WORKFLOW_TICK"],
      [40, "SSH_PROVISION"],
      [41, "SSH_REVOKE"],
    ]);
  });

  test("S2-90 S2-92 S2-93 S2-94 S2-95 S2-96 S2-97 S2-98 S2-99 S2-100 S2-101 S2-102 S2-103 S2-104 requests have the seed's fields in their order", async () => {
    await using bed = await open();
    const { jobs } = (await bed.get("/api/jobs")).json;
    const fields = Object.fromEntries(
      jobs.map(({ name, request }: { name: string; request: { properties?: object } }) => [
        name,
        Object.keys(request.properties ?? {}).map((field) =>
          field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
        ),
      ]),
    );
    const words = (text: string) => text.split(" ");
    expect(fields).toEqual({
      SANDBOX_CREATE: words(
        "name image stack agent_identifier env_json metadata_json ssh_enabled ssh_public_key web_terminal_enabled max_lifetime_seconds idle_timeout_seconds cpu_cores memory_mb disk_gb sidecar_token",
      ),
      SANDBOX_STOP: ["sandbox_id"],
      SANDBOX_RESUME: ["sandbox_id"],
      SANDBOX_DELETE: ["sandbox_id"],
      SANDBOX_SNAPSHOT: words("sidecar_url destination include_workspace include_state sidecar_token"),
      EXEC: words("sidecar_url command cwd env_json timeout_ms sidecar_token"),
      PROMPT: words("sidecar_url message session_id model context_json timeout_ms sidecar_token"),
      TASK: words("sidecar_url prompt session_id max_turns model context_json timeout_ms sidecar_token"),
      BATCH_CREATE: words("count template_request operators distribution batch_id"),
      BATCH_TASK: words(
        "sidecar_urls sidecar_tokens prompt session_id max_turns model context_json timeout_ms parallel aggregation batch_id",
      ),
      BATCH_EXEC: words("sidecar_urls sidecar_tokens command cwd env_json timeout_ms parallel batch_id"),
      BATCH_COLLECT: ["batch_id"],
      WORKFLOW_CREATE: words("name workflow_json trigger_type trigger_config sandbox_config_json"),
      WORKFLOW_TRIGGER: ["workflow_id"],
      WORKFLOW_CANCEL: ["workflow_id"],
      WORKFLOW_TICK: [],
      SSH_PROVISION: words("sidecar_url username public_key sidecar_token"),
      SSH_REVOKE: words("sidecar_url username public_key sidecar_token"),
    });
  });

  test("S2-3 S2-15 S2-19 S2-91 S2-130 a sandbox is made, used, stopped, resumed and deleted; the answer is the result itself", async () => {
    await using bed = await open();
    const made = await bed.post("/api/jobs/0", { name: "box", envJson: '{"A":"1"}' });
    expect(made.status).toBe(200);
    const { sandboxId, sidecarUrl, token } = made.json;
    expect(made.json).toEqual({
      sandboxId: expect.stringMatching(/^sandbox-[0-9a-f-]{36}$/),
      sidecarUrl: expect.stringMatching(new RegExp(`/sidecar/${sandboxId}$`)),
      token: expect.stringMatching(/^[0-9a-f]{64}$/),
      sshPort: null,
    });
    const run = await bed.post("/api/jobs/EXEC", {
      sidecarUrl,
      command: "echo hello $A; exit 3",
      sidecarToken: token,
    });
    expect(run.json).toEqual({ exitCode: 3, stdout: "hello 1\n", stderr: "" });
    expect((await bed.post("/api/jobs/1", { sandboxId })).json).toEqual({ sandboxId, stopped: true });
    expect((await bed.aido.sandboxes.get(sandboxId)).state).toBe("stopped");
    expect((await bed.post("/api/jobs/2", { sandboxId })).json).toEqual({ sandboxId, resumed: true });
    const again = await bed.post("/api/jobs/10", { sidecarUrl, command: "echo again", sidecarToken: token });
    expect(again.json).toEqual({ exitCode: 0, stdout: "again\n", stderr: "" });
    expect((await bed.post("/api/jobs/3", { sandboxId })).json).toEqual({ sandboxId, deleted: true });
    expect(await bed.aido.sandboxes.list()).toEqual([]);
  });

  test("S2-1 whatever a job makes is a sidecar, though the operator's own sandboxes are not", async () => {
    await using bed = await open();
    const plain = await bed.sandbox();
    await bed.post("/api/jobs/0", {});
    await bed.post("/api/jobs/20", { count: 2, template_request: {} });
    const others = (await bed.aido.sandboxes.list()).filter(({ id }) => id !== plain);
    expect(others.map(({ profile }) => profile)).toEqual(["sidecar", "sidecar", "sidecar"]);
  });

  test("S2-94 fields may be written as the seed does, numbers and booleans as text, and the id in any way", async () => {
    await using bed = await open();
    const { sandboxId, token } = (
      await bed.post("/api/jobs/sandbox-create", {
        agent_identifier: "coder",
        ssh_enabled: "false",
        cpu_cores: "2",
      })
    ).json;
    for (const job of ["10", "EXEC", "exec", "JOB_EXEC"]) {
      const body = {
        sidecar_url: sandboxId,
        command: "pwd",
        timeout_ms: "1000",
        env_json: "",
        sidecar_token: token,
      };
      expect((await bed.post(`/api/jobs/${job}`, body)).json).toMatchObject({ stdout: "/home/agent\n" });
    }
    expect((await bed.aido.sandboxes.get(sandboxId)).limits.cpus).toBe(2);
  });

  test.each([
    ["an unknown field", "EXEC", { sidecarUrl: "x", command: "ls", comand: "ls" }, /comand/],
    [
      "a field given twice",
      "EXEC",
      { sidecarUrl: "x", sidecar_url: "y", command: "ls" },
      /as sidecarUrl and as sidecar_url/,
    ],
    ["a missing field", "SANDBOX_STOP", {}, /sandboxId/],
    ["JSON that is none", "SANDBOX_CREATE", { env_json: "{" }, /envJson.*JSON object/],
    ["JSON that is a list", "SANDBOX_CREATE", { metadata_json: "[1]" }, /metadataJson.*JSON object/],
    ["a bad variable's name", "SANDBOX_CREATE", { env_json: '{"a b":"1"}' }, /a b/],
    ["a reserved label", "SANDBOX_CREATE", { metadata_json: '{"dev.aido.owner":"me"}' }, /reserved/],
    ["a negative number", "SANDBOX_CREATE", { cpu_cores: -1 }, /cpuCores/],
    ["a number beyond 53 bits", "SANDBOX_CREATE", { memory_mb: "18446744073709551615" }, /memoryMb/],
    ["an unknown stack", "SANDBOX_CREATE", { stack: "cobol" }, /stack "cobol"/],
    ["an address that names nothing", "EXEC", { sidecarUrl: "http://x/", command: "ls" }, /names no sandbox/],
    ["a body that is no object", "EXEC", [], /./],
  ])("S2-12 %s is refused with VALIDATION_ERROR", async (_, job, body, message) => {
    await using bed = await open();
    const reply = await bed.post(`/api/jobs/${job}`, body);
    expect(reply.status).toBe(400);
    expect(reply.json.error).toMatchObject({
      code: "VALIDATION_ERROR",
      message: expect.stringMatching(message),
    });
    expect(await bed.aido.sandboxes.list()).toEqual([]);
  });

  test("S2-12 errors have the API's usual shape: auth, not found, validation", async () => {
    await using bed = await open();
    expect(await bed.post("/api/jobs/99", {})).toMatchObject({
      status: 404,
      json: { error: { code: "RESOURCE_NOT_FOUND" } },
    });
    const unknown = await bed.post("/api/jobs/10", {
      sidecarUrl: "http://h/sidecar/sandbox-1",
      command: "ls",
    });
    expect(unknown).toMatchObject({ status: 404, json: { error: { code: "CONTAINER_NOT_FOUND" } } });
    const { sandboxId, token } = (await bed.post("/api/jobs/0", {})).json;
    const empty = await bed.post("/api/jobs/10", {
      sidecarUrl: sandboxId,
      command: "  ",
      sidecarToken: token,
    });
    expect(empty).toMatchObject({ status: 400, json: { error: { code: "VALIDATION_ERROR" } } });
  });

  test("S2-12 what the engine or the disk refuses has a code of its own", async () => {
    await using bed = await open();
    for (const code of ["RUNTIME_UNAVAILABLE", "DISK_FULL", "IMAGE_PULL_FAILED"] as const) {
      bed.driver.failNext(
        code === "IMAGE_PULL_FAILED" ? "ensureImage" : "create",
        new AidoError(code, "it says"),
      );
      const reply = await bed.post("/api/jobs/0", {});
      expect(reply).toMatchObject({ status: 503, json: { error: { code, message: "it says" } } });
    }
    expect(await bed.aido.sandboxes.list()).toEqual([]);
  });

  test("S2-27 a command of a job is a use of its sandbox", async () => {
    await using bed = await open();
    const { sandboxId } = (await bed.post("/api/jobs/0", {})).json;
    const lastUse = async () => (await bed.store.sandboxes.get(sandboxId))?.lastActivityAt.getTime() ?? 0;
    const before = await lastUse();
    await bed.post("/api/jobs/10", { sidecarUrl: sandboxId, command: "true" });
    await expect.poll(lastUse, { timeout: 10_000 }).toBeGreaterThan(before);
  });

  test("S2-44 the scheduler's own job is refused from outside", async () => {
    await using bed = await open();
    const reply = await bed.post("/api/jobs/33", {});
    expect(reply).toMatchObject({ status: 403, json: { error: { code: "FORBIDDEN" } } });
  });

  test("S2-72 S2-73 a job that names a sidecar needs its token; only the operator may leave it out", async () => {
    await using bed = await open({ guarded: true });
    const key = await bed.key("user");
    const operator = await bed.key("operator", { scopes: ["read", "write", "admin"] });
    const { sandboxId, token } = (await bed.post("/api/jobs/0", {}, { key })).json;
    const run = (sidecarToken: string, by = key) =>
      bed.post("/api/jobs/10", { sidecarUrl: sandboxId, command: "echo in", sidecarToken }, { key: by });
    expect(await run("")).toMatchObject({
      status: 401,
      json: { error: { code: "MISSING_AUTH", message: "sidecar_token is required" } },
    });
    for (const wrong of ["0".repeat(64), token.slice(1), `${token}0`]) {
      expect(await run(wrong)).toMatchObject({
        status: 403,
        json: { error: { code: "FORBIDDEN", message: "Unauthorized sidecar_token" } },
      });
    }
    expect((await run(` ${token} `)).json).toMatchObject({ stdout: "in\n" });
    expect((await run("", operator)).json).toMatchObject({ stdout: "in\n" });
    expect(await run("0".repeat(64), operator)).toMatchObject({ status: 403 });
  });

  test("S2-72 somebody else's sandbox is not there, with its token or without", async () => {
    await using bed = await open({ guarded: true });
    const { sandboxId, token } = (await bed.post("/api/jobs/0", {}, { key: await bed.key("one") })).json;
    const key = await bed.key("two");
    for (const sidecarToken of ["", token]) {
      const reply = await bed.post(
        "/api/jobs/10",
        { sidecarUrl: sandboxId, command: "ls", sidecarToken },
        { key },
      );
      expect(reply.json.error.code).toBe("CONTAINER_NOT_FOUND");
    }
    for (const job of [1, 2, 3]) {
      const reply = await bed.post(`/api/jobs/${job}`, { sandboxId }, { key });
      expect(reply.json.error.code).toBe("CONTAINER_NOT_FOUND");
    }
    expect((await bed.aido.sandboxes.get(sandboxId)).state).toBe("running");
  });

  test("S2-90 what is empty or 0 is the operator's default, and lifetimes are bounded", async () => {
    await using bed = await open();
    const create = async (body: object) => {
      const { sandboxId } = (await bed.post("/api/jobs/0", body)).json;
      const record = await bed.store.sandboxes.get(sandboxId);
      if (record === undefined) throw new Error("there is no record");
      return record;
    };
    const plain = await create({
      name: "",
      image: "",
      stack: "",
      env_json: "",
      metadata_json: "",
      memory_mb: 0,
    });
    expect(plain).toMatchObject({
      profile: "sidecar",
      workdir: "/home/agent",
      ttlMs: 86_400_000,
      idleTimeoutMs: 1_800_000,
    });
    const full = await create({
      name: "full",
      stack: "python",
      agent_identifier: "coder",
      env_json: '{"TEXT":"a","NUMBER":1.5,"YES":true,"NO":null,"LIST":[1],"OBJECT":{}}',
      metadata_json: '{"team":"x","count":3}',
      web_terminal_enabled: true,
      max_lifetime_seconds: 999_999,
      idle_timeout_seconds: 60,
      cpu_cores: 2,
      memory_mb: 256,
      disk_gb: 1,
    });
    expect(full).toMatchObject({
      name: "full",
      image: expect.stringMatching(/^python:/),
      env: { TEXT: "a", NUMBER: "1.5", YES: "true" },
      ttlMs: 172_800_000,
      idleTimeoutMs: 60_000,
      limits: { cpus: 2, memoryBytes: 256 * 1024 ** 2, diskBytes: 1024 ** 3 },
      labels: {
        team: "x",
        stack: "python",
        "dev.aido.agent-identifier": "coder",
        "dev.aido.web-terminal": "true",
      },
    });
    expect(Object.keys(full.env)).toEqual(["TEXT", "NUMBER", "YES"]);
    expect(full.labels).not.toHaveProperty("count");
    expect(await create({ image: "node:20", stack: "python" })).toMatchObject({
      image: "node:20",
      labels: { image: "node:20", stack: "python" },
    });
  });

  test("S2-71 S2-90 a token may be chosen, and opens the sandbox", async () => {
    await using bed = await open();
    const made = await bed.post("/api/jobs/0", { sidecar_token: " my-own-long-token " });
    expect(made.json.token).toBe("my-own-long-token");
    const body = { sidecarUrl: made.json.sidecarUrl, command: "true", sidecarToken: "my-own-long-token" };
    expect((await bed.post("/api/jobs/10", body)).json.exitCode).toBe(0);
    expect(JSON.stringify(bed.logged)).not.toContain("my-own-long-token");
  });

  test("S2-24 S2-28 S2-94 a command has a directory, variables and a limit, and large output is cut short", async () => {
    await using bed = await open();
    const { sandboxId, token } = (await bed.post("/api/jobs/0", {})).json;
    const run = async (body: object) =>
      (await bed.post("/api/jobs/10", { sidecarUrl: sandboxId, sidecarToken: token, ...body })).json;
    expect(await run({ command: "pwd; echo $X", cwd: "/tmp", envJson: { X: 7 } })).toMatchObject({
      stdout: "/tmp\n7\n",
    });
    expect(await run({ command: "sleep 100", timeoutMs: 50 })).toMatchObject({ exitCode: 124 });
    expect(await run({ command: "warn oops; exit 2" })).toEqual({
      exitCode: 2,
      stdout: "",
      stderr: "oops\n",
    });
    const large = await run({ command: `flood ${2 * 1024 * 1024}` });
    expect(large).toMatchObject({ exitCode: 0, truncated: true });
    expect(large.stdout).toHaveLength(1024 * 1024);
  });

  test("S2-7 a job that this aido cannot do says so", async () => {
    await using bed = await open();
    const replies = await Promise.all(JOB_NAMES.map((name) => bed.post(`/api/jobs/${JOBS[name]}`, {})));
    for (const { status, json } of replies) {
      if (status === 501) expect(json.error).toMatchObject({ code: "UNSUPPORTED", hint: expect.any(String) });
      else expect([200, 400, 403, 404]).toContain(status);
    }
  });

  test("S2-78 each job is counted once, a failed one as failed", async () => {
    await using bed = await open();
    const { sandboxId } = (await bed.post("/api/jobs/0", {})).json;
    await bed.post("/api/jobs/10", { sidecarUrl: sandboxId, command: "exit 1" });
    await bed.post("/api/jobs/10", { sidecarUrl: "nobody", command: "exit 1" });
    await bed.post("/api/jobs/10", { command: 5 });
    expect(await bed.store.counters.read()).toMatchObject({ total_jobs: 3, failed_jobs: 1 });
    expect(await bed.store.jobs.list()).toEqual([]);
  });

  test("S2-78 a job whose process has died is counted as failed when the next one comes", async () => {
    await using bed = await open();
    const dead = { id: "j1", job: 10, holder: bed.deadHolder(), startedAt: new Date() };
    await bed.store.jobs.begin(dead);
    expect(await bed.aido.metrics()).toMatchObject({ total_jobs: 1, failed_jobs: 1 });
    await bed.aido.jobs.recover();
    expect(await bed.store.counters.read()).toMatchObject({ total_jobs: 1, failed_jobs: 1 });
  });
});

describe("jobs through the SDK's client", () => {
  test("S2-7 are typed by number or name, and errors are the server's own", async () => {
    await using bed = await open();
    const client = bed.client();
    const { sandboxId, token } = await client.jobs.run("SANDBOX_CREATE", {});
    const { exitCode, stdout } = await client.jobs.run(10, {
      sidecarUrl: sandboxId,
      command: "echo typed",
      sidecarToken: token,
    });
    expect([exitCode, stdout]).toEqual([0, "typed\n"]);
    const { stopped } = await client.jobs.run("SANDBOX_STOP", { sandboxId });
    expect(stopped).toBe(true);
    await expect(client.jobs.run("SANDBOX_STOP", { sandboxId: "nobody" })).rejects.toMatchObject({
      code: "CONTAINER_NOT_FOUND",
    });
    expect(await client.jobs.list()).toHaveLength(18);
  });
});
