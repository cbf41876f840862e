import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { READ_ROLE, STS_KEYS, StsServer } from "../backends/sts-server.ts";
import { AidoServer } from "../e2e/aido-server.ts";
import { Project } from "../e2e/project.ts";
import { READ_CREDENTIALS, type SeenCredentials } from "./aws-bed.ts";

const IMAGES = { local: "host", docker: "aido-test:python" } as const;
const SPEC = (driver: keyof typeof IMAGES, aws = "{ role: readonly, services: [s3, sqs] }") =>
  `name: clouded\nruntime: ${IMAGES[driver]}\nttl: 10m\npermissions:\n  aws: ${aws}\n`;
const FILES = (driver: keyof typeof IMAGES) => ({
  "sandbox.yaml": SPEC(driver),
  "task.py": READ_CREDENTIALS,
});
const hash = (text: string) => createHash("sha256").update(text).digest("hex");

let sts: StsServer;
beforeAll(async () => {
  sts = await StsServer.start();
});
afterAll(async () => {
  await sts[Symbol.asyncDispose]();
});

/** Of the last role that was given. */
function expectIssued(stdout: string): void {
  const seen = JSON.parse(stdout) as SeenCredentials;
  const call = sts.calls.at(-1);
  expect(call?.params["RoleArn"]).toBe(READ_ROLE);
  expect(call?.policy.Statement[0]?.Action).toEqual(["s3:Get*", "s3:List*", "sqs:GetQueue*", "sqs:List*"]);
  expect(seen).toMatchObject({
    accessKeyId: call?.issued.accessKeyId,
    secret: hash(call?.issued.secretAccessKey ?? ""),
    token: hash(call?.issued.sessionToken ?? ""),
    without: [403, 403, 403],
  });
}

async function contentOf(directory: string): Promise<string> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
  return (await Promise.all(files.map((file) => readFile(file, "latin1")))).join("\n");
}

describe.each(["local", "docker"] as const)("AWS permissions of a sandbox.yaml on %s:", (driver) => {
  test("S0-90 aido run and sandbox up give them, and leave them nowhere", async () => {
    await using project = await Project.make(driver, FILES(driver));
    const env = { ...sts.env, AIDO_LOG_LEVEL: "debug" };
    const before = sts.calls.length;
    const run = await project.ok(["run", "task.py"], { env });
    expectIssued(run.stdout);
    const { id } = await project.json<{ id: string }>(["sandbox", "up"], { env });
    expect(sts.calls.length).toBe(before + 1);
    const second = await project.ok(["run", "task.py", "--sandbox", id], { env });
    expectIssued(second.stdout);
    const evidence = await project.ok(["evidence", id]);
    expect(evidence.stdout).toContain("aws.granted");
    const everything = (await contentOf(project.directory)) + run.stderr + second.stderr + evidence.stdout;
    expect(everything).toContain(READ_ROLE);
    for (const secret of [...sts.secrets, STS_KEYS.secretAccessKey]) expect(everything).not.toContain(secret);
  });

  test("S0-90 without a role, credentials or STS's consent nothing is started, and it says what to set", async () => {
    await using project = await Project.make(driver, FILES(driver));
    const refused = async (env: Readonly<Record<string, string>>, code: number, hint: string) => {
      const outcome = await project.aido(["run", "task.py"], { env });
      expect(outcome, hint).toMatchObject({ code: 125, stdout: "", stderr: expect.stringContaining(hint) });
      // Making ready starts nothing, so STS is not asked yet.
      if (code !== 0) expect((await project.aido(["sandbox", "up"], { env })).code).toBe(code);
    };
    const { AIDO_AWS_READONLY_ROLE: _, ...noRole } = sts.env;
    const { AWS_ACCESS_KEY_ID: __, ...noKeys } = sts.env;
    await refused({}, 9, "AIDO_AWS_READONLY_ROLE");
    await refused(noRole, 9, "AIDO_AWS_READONLY_ROLE");
    await refused(noKeys, 9, "AWS_ACCESS_KEY_ID");
    await refused({ ...sts.env, AIDO_AWS_ALLOWED_SERVICES: "s3" }, 3, "aws.allowedServices");
    await project.write("sandbox.yaml", SPEC(driver, "{ services: [dynamo] }"));
    await refused(sts.env, 2, "Did you mean dynamodb?");
    await project.write("sandbox.yaml", SPEC(driver));
    await refused({ ...sts.env, AIDO_AWS_READONLY_ROLE: `${READ_ROLE}x` }, 0, "trust policy");
    await refused({ ...sts.env, AWS_ENDPOINT_URL_STS: "http://127.0.0.1:1" }, 0, "aws.stsEndpoint");
  });

  test("over a server its settings decide, and its operator which keys may ask", async () => {
    await using server = await AidoServer.start(driver, { ...sts.env, AIDO_SERVE_OPEN: "true" });
    await using project = await Project.on(server.url, FILES(driver), driver);
    expectIssued((await project.ok(["run", "task.py"])).stdout);
    const admin = (await server.local("key", "create", "boss", "--scope", "admin", "--quiet")).trim();
    const plain = (await server.local("key", "create", "worker", "--scope", "write", "--quiet")).trim();
    await server.stop();
    await server.restart();
    const refused = await project.aido(["run", "task.py"], { env: { AIDO_API_KEY: plain } });
    expect(refused).toMatchObject({ code: 125, stderr: expect.stringContaining("AWS permissions") });
    const allowed = await project.ok(["run", "task.py"], { env: { AIDO_API_KEY: admin } });
    expectIssued(allowed.stdout);
    const keys = JSON.parse(await server.local("key", "list", "--json")) as { id: string }[];
    for (const { id } of keys) await server.local("key", "revoke", id);
    await server.stop();
    await server.restart();
  });
});

test("a server that is killed and started again goes on renewing for what runs", async () => {
  sts.maxSeconds = 12 * 3600;
  await using server = await AidoServer.start("local", sts.env);
  await using project = await Project.on(server.url, {
    "sandbox.yaml": SPEC("local").replace("10m", "30m"),
    "task.py": `${READ_CREDENTIALS}\nimport time, sys\nsys.stdout.flush()\nwhile not os.path.exists("/work/go"):\n    time.sleep(0.05)\n`,
  });
  await using running = project.start(["run", "task.py"]);
  await running.until("accessKeyId");
  const before = sts.calls.length;
  await server.kill();
  await server.restart();
  // What was offered is still good, so nothing is asked for.
  expect(sts.calls.length).toBe(before);
  const [line] = running.stdout.split("\n");
  expectIssued(line ?? "");
});
