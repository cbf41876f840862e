import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { READ_ROLE, STS_KEYS, WRITE_ROLE } from "../backends/sts-server.ts";
import { type DriverBackend, until } from "../contract/driver-backend.ts";
import { fileOf, type RunHost } from "../run/run-harness.ts";
import { ASK, awsBed, READ_CREDENTIALS, type SeenCredentials } from "./aws-bed.ts";

const MINUTE_MS = 60_000;
const hash = (text: string) => createHash("sha256").update(text).digest("hex");

/** AWS permissions in real sandboxes whose image has Python; `outside` is all that the backend can be asked about one. */
export function awsSuite(
  name: string,
  make: () => Promise<DriverBackend>,
  outside: (containerId: string, backend: DriverBackend) => Promise<string>,
): void {
  describe(`AWS permissions on ${name}:`, () => {
    let backend: DriverBackend;
    beforeAll(async () => {
      backend = await make();
    });
    afterAll(async () => {
      await backend[Symbol.asyncDispose]();
    });
    type Bed = Awaited<ReturnType<typeof awsBed>>;
    const read = async (bed: Bed, on: RunHost, id: string) =>
      JSON.parse(await bed.python(on, id, READ_CREDENTIALS)) as SeenCredentials;
    const offers = async (bed: Bed, on: RunHost, id: string) => {
      const record = await bed.store.sandboxes.get(id);
      if (record === undefined) throw new Error("no such sandbox");
      return (await on.supervisors.get(record).list()).filter(
        (exec) => exec.id.startsWith("aws-") && !exec.ended,
      );
    };

    /** It is told once the new ones are offered in place of the former. */
    const untilRenewed = async (on: RunHost, id: string, times: number) => {
      const told = async () => (await on.events(id)).filter(({ event }) => event === "aws.renewed").length;
      await until(`renewed ${times} times`, async () => (await told()) === times);
    };

    test("S0-16 S0-17 S0-18 S0-90 a run's task reads credentials of its role as the SDKs do, and they are nowhere else", async () => {
      await using bed = await awsBed(backend);
      const on = bed.host();
      const { id } = await on.up({
        ttlMs: 20 * MINUTE_MS,
        permissions: { aws: { role: "readonly", services: ["s3", "dynamodb"] } },
      });
      expect(bed.sts.calls).toEqual([]);
      const summary = await on.run({ sandbox: id, task: fileOf("task.py", READ_CREDENTIALS) });
      expect(summary).toMatchObject({ status: "completed", exitCode: 0 });
      const seen = JSON.parse(await on.read(id, summary.stdout)) as SeenCredentials;
      const [call] = bed.sts.calls;
      expect(bed.sts.calls).toHaveLength(1);
      expect(call?.params).toMatchObject({ RoleArn: READ_ROLE, RoleSessionName: `aido-${id}` });
      expect(Number(call?.params["DurationSeconds"])).toBeLessThanOrEqual(20 * 60);
      expect(call?.policy.Statement[0]?.Action).toEqual(
        expect.arrayContaining(["s3:Get*", "dynamodb:Query"]),
      );
      expect(call?.params["Policy"]).not.toContain("DateLessThan");
      expect(seen).toMatchObject({
        status: 200,
        accessKeyId: call?.issued.accessKeyId,
        secret: hash(call?.issued.secretAccessKey ?? ""),
        token: hash(call?.issued.sessionToken ?? ""),
        region: "eu-west-1",
        without: [403, 403, 403],
        variables: [
          "AWS_CONTAINER_AUTHORIZATION_TOKEN",
          "AWS_CONTAINER_CREDENTIALS_FULL_URI",
          "AWS_DEFAULT_REGION",
          "AWS_REGION",
        ],
      });
      const granted = (await on.events(id)).find(({ event }) => event === "aws.granted");
      expect(granted?.detail).toEqual({
        role: "readonly",
        roleArn: READ_ROLE,
        services: ["s3", "dynamodb"],
        expiresAt: expect.stringMatching(/Z$/),
      });
      expect(String(granted?.detail?.["expiresAt"]).slice(0, 19)).toBe(seen.expiration.slice(0, 19));
      expect(new Date(seen.expiration).getTime()).toBeLessThanOrEqual(Number(call?.issued.expiresAt));
      await expectNowhere(bed.directory, [...bed.sts.secrets, STS_KEYS.secretAccessKey]);
    });

    test("the driver's own record of the container has neither the credentials nor the token", async () => {
      await using bed = await awsBed(backend);
      const on = bed.host();
      const { id } = await on.sandboxes.create(bed.request());
      const token = await bed.python(
        on,
        id,
        "import os; print(os.environ['AWS_CONTAINER_AUTHORIZATION_TOKEN'][::-1])",
      );
      const known = await outside((await backend.driver.inspect(id))?.containerId ?? "", backend);
      expect(known).toContain(id);
      const secrets = [...bed.sts.secrets, token.trim().split("").toReversed().join("")];
      for (const secret of secrets) expect(known).not.toContain(secret);
      await expectNowhere(backend.directory, secrets);
    });

    test("credentials are renewed before they end, and the former ones are no longer offered", async () => {
      await using bed = await awsBed(backend);
      const on = bed.host();
      const { id } = await on.sandboxes.create(bed.request());
      const first = await read(bed, on, id);
      bed.clock.jump(40 * MINUTE_MS);
      expect((await read(bed, on, id)).accessKeyId).toBe(first.accessKeyId);
      bed.clock.jump(6 * MINUTE_MS);
      await until("they are renewed", async () => bed.sts.calls.length === 2);
      await untilRenewed(on, id, 1);
      await until("one is offered", async () => (await offers(bed, on, id)).length === 1);
      const second = await read(bed, on, id);
      expect(second.accessKeyId).toBe(bed.sts.calls[1]?.issued.accessKeyId);
      expect(second.without).toEqual([403, 403, 403]);
      expect((await on.events(id)).map(({ event }) => event)).toContain("aws.renewed");
      await on.sandboxes.stop(id);
      bed.clock.jump(120 * MINUTE_MS);
      await on.sandboxes.start(id);
      expect((await read(bed, on, id)).accessKeyId).toBe(bed.sts.calls[2]?.issued.accessKeyId);
      expect(bed.sts.calls).toHaveLength(3);
    });

    test("when the aido process is killed they stay until they end, and the next process goes on", async () => {
      await using bed = await awsBed(backend);
      const killed = bed.host();
      const { id } = await killed.sandboxes.create(bed.request());
      const { accessKeyId } = await read(bed, killed, id);
      await killed.die();
      const next = bed.host();
      expect((await read(bed, next, id)).accessKeyId).toBe(accessKeyId);
      expect(bed.sts.calls).toHaveLength(1);
      await next.die();
      bed.clock.jump(61 * MINUTE_MS);
      const last = bed.host();
      expect((await read(bed, last, id)).accessKeyId).toBe(bed.sts.calls[1]?.issued.accessKeyId);
      expect(bed.sts.calls).toHaveLength(2);
      expect(await offers(bed, last, id)).toHaveLength(1);
    });

    test("a life that is shorter than STS can make is held by the session's policy, and cut when the life is", async () => {
      await using bed = await awsBed(backend);
      const on = bed.host();
      const before = bed.clock.now().getTime();
      const { id, expiresAt } = await on.sandboxes.create(bed.request({ ttlMs: 5 * MINUTE_MS }));
      const { expiration } = await read(bed, on, id);
      expect(new Date(expiration).getTime()).toBeLessThanOrEqual(Number(expiresAt));
      expect(new Date(expiration).getTime()).toBeGreaterThan(before + 4 * MINUTE_MS);
      expect(bed.sts.calls[0]?.params["DurationSeconds"]).toBe("900");
      expect(bed.sts.calls[0]?.policy.Statement[0]?.Condition).toEqual({
        DateLessThan: { "aws:CurrentTime": expiration },
      });
      await on.sandboxes.setTtl(id, 60 * MINUTE_MS);
      bed.clock.jump(3 * MINUTE_MS);
      await until("they are renewed", async () => bed.sts.calls.length === 2);
      expect(bed.sts.calls[1]?.params["Policy"]).not.toContain("DateLessThan");
      await untilRenewed(on, id, 1);
      await until("one is offered", async () => (await offers(bed, on, id)).length === 1);
      await on.sandboxes.setTtl(id, 2 * MINUTE_MS);
      await until("they are cut", async () => bed.sts.calls.length === 3);
      await untilRenewed(on, id, 2);
      await until("one is offered", async () => (await offers(bed, on, id)).length === 1);
      const cut = await read(bed, on, id);
      expect(new Date(cut.expiration).getTime()).toBeLessThan(bed.clock.now().getTime() + 2 * MINUTE_MS);
    });

    test("S0-90 what is not to be had is refused before anything is made", async () => {
      await using bed = await awsBed(backend, { allowedServices: ["s3"] });
      const on = bed.host();
      const refused = async (request: Parameters<Bed["request"]>[0], code: string) => {
        await expect(on.sandboxes.create(bed.request(request)), code).rejects.toMatchObject({ code });
        expect(await backend.driver.list()).toEqual([]);
        expect(await bed.store.sandboxes.list()).toEqual([]);
      };
      const aws = (role: string, ...services: string[]) => ({ permissions: { aws: { role, services } } });
      await refused(aws("readonly", "dynamodb"), "AWS_REFUSED");
      await refused(aws("arn:aws:iam::123456789012:role/other", "s3"), "AWS_REFUSED");
      await refused(aws("admin", "s3"), "VALIDATION_ERROR");
      await refused(aws("readonly", "s4"), "VALIDATION_ERROR");
      await refused(aws("readonly"), "VALIDATION_ERROR");
      await refused({ ...aws("readonly", "s3"), network: "host" }, "UNSUPPORTED");
      expect(bed.sts.calls).toEqual([]);
      bed.sts.roles.delete(READ_ROLE);
      await refused(aws("readonly", "s3"), "AWS_REFUSED");
      expect(bed.sts.refusals).toEqual(["AccessDenied"]);
      bed.sts.answer = (_, response) => void response.writeHead(500).end();
      await refused(aws("readonly", "s3"), "AWS_UNAVAILABLE");
      bed.sts.answer = undefined;
      await on.sandboxes.create(bed.request(aws("readwrite", "s3")));
      expect(bed.sts.calls[0]).toMatchObject({ params: { RoleArn: WRITE_ROLE } });
    });

    test("STS that fails while a sandbox runs ends nothing, and is asked again until it answers", async () => {
      await using bed = await awsBed(backend);
      const on = bed.host();
      const { id } = await on.sandboxes.create(bed.request());
      bed.sts.answer = (_, response) => void response.writeHead(500).end();
      bed.clock.jump(50 * MINUTE_MS);
      const failed = async () => (await on.events(id)).some(({ event }) => event === "aws.failed");
      await until("the failure is told", failed);
      const { accessKeyId } = await read(bed, on, id);
      expect(accessKeyId).toBe(bed.sts.calls[0]?.issued.accessKeyId);
      bed.sts.answer = undefined;
      await until("they are renewed", async () => {
        bed.clock.jump(MINUTE_MS);
        return bed.sts.calls.length === 2;
      });
      expect((await on.events(id)).filter(({ event }) => event === "aws.failed")).toHaveLength(1);
    });

    test("a sandbox that kills what offers them, and floods it, gets the same ones back and makes no load at STS", async () => {
      await using bed = await awsBed(backend);
      const on = bed.host();
      const { id } = await on.sandboxes.create(bed.request());
      const { accessKeyId } = await read(bed, on, id);
      const [first] = await offers(bed, on, id);
      // Itself included, on some kernels.
      await bed.python(on, id, "import os; os.kill(-1, 9)").catch(() => undefined);
      await until("they are offered again", async () => {
        bed.clock.jump(1_000);
        return (await offers(bed, on, id)).some((offer) => offer.id !== first?.id);
      });
      const flood = `
import os, socket
at = ("127.0.0.1", int(os.environ["AWS_CONTAINER_CREDENTIALS_FULL_URI"].split(":")[2].strip("/")))
for i in range(300):
    s = socket.create_connection(at, timeout=20)
    s.sendall([b"GET / HTTP/1.1\\r\\n\\r\\n", b"\\0" * 9000, b"GET /" + b"x" * 8192, b"\\r\\n\\r\\n"][i % 4])
    s.close()
`;
      await bed.python(on, id, flood);
      expect((await read(bed, on, id)).accessKeyId).toBe(accessKeyId);
      expect(bed.sts.calls).toHaveLength(1);
    });

    test("one sandbox's loopback and token are of no use to another", async () => {
      await using bed = await awsBed(backend);
      const on = bed.host();
      const one = await on.sandboxes.create(bed.request());
      const other = await on.sandboxes.create(bed.request());
      const plain = await on.sandboxes.create(bed.request({ permissions: undefined }));
      const env = "import os; print(os.environ['AWS_CONTAINER_AUTHORIZATION_TOKEN'])";
      const token = (await bed.python(on, one.id, env)).trim();
      const asked = `${ASK}
try:
    print(ask("${token}", 15170)[0])
except ConnectionRefusedError:
    print("nobody")
`;
      expect(await bed.python(on, one.id, asked)).toBe("200\n");
      expect(await bed.python(on, other.id, asked)).toBe("403\n");
      expect(await bed.python(on, plain.id, asked)).toBe("nobody\n");
      await expect(bed.python(on, plain.id, env)).rejects.toThrow("KeyError");
    });
  });
}

async function expectNowhere(directory: string, secrets: readonly string[]): Promise<void> {
  const files = await readdir(directory, { recursive: true, withFileTypes: true });
  const plain = files.filter((file) => file.isFile());
  expect(plain.length).toBeGreaterThan(3);
  for (const file of plain) {
    const content = await readFile(join(file.parentPath, file.name), "latin1");
    for (const secret of secrets) expect(content, file.name).not.toContain(secret);
  }
}
