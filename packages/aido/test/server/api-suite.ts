import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { eventsOf, readEvents } from "./read-events.ts";
import { ServerBed, until } from "./server-bed.ts";

const run = promisify(execFile);
const HISTORY_SCRIPT = new URL("../../../../examples/history.sh", import.meta.url).pathname;
const CURL_SCRIPT = new URL("curl-history.sh", import.meta.url).pathname;
const MIB = 1024 * 1024;
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

export interface ApiSuiteOptions {
  driver: "local" | "docker";
  /** Ends a sandbox's first process behind aido's back. */
  killContainer: (bed: ServerBed, containerId: string) => Promise<void>;
}

/** The test image under a name that people use, unless it is somebody's; without a registry it could not be had. */
async function borrowedName(name: string): Promise<AsyncDisposable> {
  const isTaken = await run("docker", ["image", "inspect", name]).then(
    () => true,
    () => false,
  );
  if (!isTaken) await run("docker", ["tag", "aido-test:node", name]);
  return {
    async [Symbol.asyncDispose]() {
      if (!isTaken) await run("docker", ["rmi", "--no-prune", name]);
    },
  };
}

/** The HTTP API of the built server, with real sandboxes. */
export function apiSuite({ driver, killContainer }: ApiSuiteOptions): void {
  describe(`the server, with the ${driver} driver`, () => {
    test("S3-1 S3-2 S3-4 S3-10 S3-11 S3-12 S3-13 S3-14 S3-15 S3-16 S3-17 S3-18 S3-19 S3-20 S3-20b S3-21 S3-22 S3-27 S3-28 S3-29 S3-46 S3-55 S3-56 S3-61 S3-68 creates, runs, tells and deletes, in the words of the API's description", async () => {
      await using bed = await ServerBed.start({ driver });
      const created = await bed.post("/api/sandbox", {
        image: bed.image,
        options: { timeout: 60_000, memoryLimit: "512m", cpuLimit: "0.5" },
      });
      expect(created.status).toBe(201);
      const { containerId } = created.json;
      expect(created.json).toMatchObject({
        status: "created",
        createdAt: expect.stringMatching(ISO),
        expiresAt: expect.stringMatching(ISO),
      });
      const executed = await bed.exec(containerId, ["python3", "main.py"], {
        files: { "main.py": "print(open('data/input.txt').read())", "data/input.txt": "sample data" },
      });
      expect(executed.status).toBe(200);
      expect(executed.json).toMatchObject({ status: "success", stdout: "sample data\n", stderr: "" });
      expect(executed.json.duration).toBeGreaterThan(0);
      const failed = await bed.exec(containerId, ["python3", "-c", "import sys; sys.exit('sorry')"]);
      expect(failed.json).toMatchObject({
        status: "error",
        error: "Process exited with code 1",
        stderr: "sorry\n",
        exitCode: 1,
      });
      const status = await bed.get(`/api/sandbox/${containerId}`);
      expect(status.json).toMatchObject({
        containerId,
        status: "running",
        resourceUsage: {
          cpuUsage: expect.stringMatching(/^\d+\.\d+$/),
          memoryUsage: expect.stringMatching(/^\d+m$/),
        },
      });
      const deleted = await bed.call("DELETE", `/api/sandbox/${containerId}`);
      expect(deleted.json).toEqual({ status: "deleted", containerId });
      expect((await bed.get(`/api/sandbox/${containerId}`)).json.error.code).toBe("CONTAINER_NOT_FOUND");
      expect(readdirSync(join(bed.dataDir, "sandboxes"))).toEqual([]);
    });

    test("S3-86 S3-87 S3-88 S3-89 S3-90 the example of the history runs as it is", async () => {
      await using bed = await ServerBed.start({ driver });
      const image = driver === "docker" ? "aido-test:node" : "node:18-alpine";
      const env = { PATH: process.env["PATH"] ?? "", AIDO_URL: bed.url, AIDO_IMAGE: image };
      const { stdout } = await run(HISTORY_SCRIPT, [], { env });
      expect(stdout).toContain('"message": "Initial commit"');
      expect(stdout).toContain('"id": "unknown"');
      expect(stdout).toContain('-console.log("Version 1");\n+console.log("Version 2");\n');
      expect(stdout).toContain('"status": "success"');
      expect(stdout.trimEnd()).toMatch(/# The program is the first version again\nVersion 1$/);
      expect((await bed.get("/api/sandbox")).json.sandboxes).toEqual([]);
    });

    test("S3-86 S3-87 S3-88 S3-89 S3-90 every documented curl call works as it is printed", async () => {
      await using bed = await ServerBed.start({ driver });
      await using _image = driver === "docker" ? await borrowedName("node:18-alpine") : undefined;
      const script = readFileSync(CURL_SCRIPT, "utf8").replaceAll("http://localhost:3000", bed.url);
      const { stdout } = await run("sh", ["-c", script]);
      const [made, ...answers] = stdout.trimEnd().split("\n");
      expect(made).toMatch(/^Container ID: \w+$/);
      const [first, second, history, diff, rollback, again] = answers.map((line) => JSON.parse(line));
      expect(first).toMatchObject({ status: "success", exitCode: 0, stdout: "Version 1\n" });
      expect(second).toMatchObject({ status: "success", stdout: "Version 2\nNew feature added!\n" });
      const message = "Update files for sandbox execution";
      expect(history.history).toMatchObject([
        { id: second.id, message, files: ["index.js"] },
        { id: first.id, message, files: ["index.js"] },
        { id: "unknown", message: "Initial commit" },
      ]);
      for (const { timestamp } of history.history) {
        expect(timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/);
      }
      expect(Object.keys(diff.diff)).toEqual(["index.js"]);
      expect(diff.diff["index.js"]).toContain(
        '+console.log("Version 2");\n+console.log("New feature added!");\n',
      );
      expect(rollback).toMatchObject({ status: "success" });
      expect(again).toMatchObject({ status: "success", stdout: "Version 1\n" });
    });

    test("server-sent events and offsets give each byte once", async () => {
      await using bed = await ServerBed.start({ driver });
      const id = await bed.sandbox();
      const script =
        "i=0; while [ $i -lt 50 ]; do echo line $i; i=$((i+1)); done; while [ ! -e go ]; do sleep 0.02; done; echo end";
      const { json } = await bed.sh(id, script, { background: true });
      const path = `/api/sandbox/${id}/exec/${json.id}/stream`;
      const lines = Array.from({ length: 50 }, (_, at) => `line ${at}\n`).join("");
      let text = "";
      let last = "";
      for await (const event of eventsOf(await bed.fetch(path))) {
        text += Buffer.from(event.data.data, "base64").toString();
        last = event.id ?? "";
        if (text.length >= lines.length) break;
      }
      expect(text).toBe(lines);
      expect(last).toBe(`${lines.length}:0`);
      await bed.sh(id, "touch go");
      const rest = await readEvents(await bed.fetch(path, { headers: { "last-event-id": last } }));
      expect(rest.map(({ event }) => event)).toEqual(["output", "end"]);
      expect(Buffer.from(rest[0]?.data.data, "base64").toString()).toBe("end\n");
      expect(rest[1]?.data).toMatchObject({ status: "success", exitCode: 0 });
    });

    test("S3-31 S3-47 S3-48 a sandbox ends at its expiry; its evidence and the audit stay", async () => {
      await using bed = await ServerBed.start({ driver });
      const id = await bed.sandbox({ options: { timeout: 4000 } });
      await bed.sh(id, "echo secret > file; sleep 600 &", { background: true });
      await until("it is gone", async () => (await bed.get(`/api/sandbox/${id}`)).status === 410);
      await until("its files are gone", () => readdirSync(join(bed.dataDir, "sandboxes")).length === 0);
      expect((await bed.get("/api/sandbox")).json.sandboxes).toEqual([]);
      const evidence = (await bed.get(`/api/sandbox/${id}/evidence`)).text;
      expect(evidence).toContain("sandbox.created");
      const audit = (await bed.get(`/api/audit?sandbox=${id}`)).json.entries;
      expect(audit.map((entry: { operation: string }) => entry.operation)).toContain("createSandbox");
      expect((await bed.get(`/api/evidence/verify?sandbox=${id}`)).json.verdicts).toMatchObject([
        { ok: true },
      ]);
    });

    test("a sandbox that died says so, and so do its commands", async () => {
      await using bed = await ServerBed.start({ driver });
      const id = await bed.sandbox();
      const { json } = await bed.sh(id, `echo alive; sleep 600; : marker-${id}`, { background: true });
      const path = `/api/sandbox/${id}/exec/${json.id}`;
      await until("it runs", async () => (await bed.get(path)).json.stdout === "alive\n");
      const stream = await bed.fetch(`${path}/stream`);
      await killContainer(bed, id);
      await until(
        "it is seen",
        async () => (await bed.get(`/api/sandbox/${id}`)).json.status === "stopped",
        5000,
      );
      expect((await readEvents(stream)).at(-1)).toMatchObject({ event: "end", data: { status: "error" } });
      expect((await bed.get(path)).json).toMatchObject({ status: "error", stdout: "alive\n" });
      const refused = await bed.sh(id, "true");
      expect(refused.status).toBe(409);
      expect((await bed.call("DELETE", `/api/sandbox/${id}`)).status).toBe(200);
    });

    test("large files go up and down without being held in memory", async () => {
      await using bed = await ServerBed.start({ driver });
      const id = await bed.sandbox({ history: false });
      const few = await passThrough(bed, id, 50);
      const archive = await bed.fetch(`/api/sandbox/${id}/files/tar?path=.`);
      const bytes = Buffer.from(await archive.arrayBuffer());
      expect(bytes.length).toBeGreaterThan(50 * MIB);
      const upload = { method: "PUT", body: bytes };
      expect((await bed.fetch(`/api/sandbox/${id}/files/tar?path=copy`, upload)).status).toBe(200);
      expect((await bed.sh(id, "cmp big copy/big && echo same")).json.stdout).toBe("same\n");
      const many = await passThrough(bed, id, 200);
      // Held in memory, the larger one would take 150 MiB more at least.
      expect(many - few).toBeLessThan(100 * MIB);
    });

    test("changes of files are watched", async () => {
      await using bed = await ServerBed.start({ driver });
      const id = await bed.sandbox();
      const stream = await bed.fetch(`/api/sandbox/${id}/files/watch?path=.`);
      const seen = readEvents(stream, ({ data }) => String(data.path).endsWith("made.txt"));
      let isSeen = false;
      const noted = seen.then(() => {
        isSeen = true;
      });
      await until("the change is told", async () => {
        await bed.sh(id, "rm -f made.txt; echo x > made.txt");
        return isSeen;
      });
      await noted;
      expect((await seen).at(-1)).toMatchObject({ event: "change" });
    });
  });
}

/** Sends a file of so many MiB up and reads it back; the most memory the server had meanwhile. */
async function passThrough(bed: ServerBed, id: string, mebibytes: number): Promise<number> {
  const path = `/api/sandbox/${id}/files?path=big`;
  const chunk = Buffer.alloc(MIB, "0123456789abcdef");
  let most = bed.rss();
  async function* body() {
    for (let at = 0; at < mebibytes; at += 1) {
      most = Math.max(most, bed.rss());
      yield chunk;
    }
  }
  const upload = { method: "PUT", body: ReadableStream.from(body()), duplex: "half" };
  expect((await bed.fetch(path, upload as RequestInit)).status).toBe(200);
  expect(Number((await bed.sh(id, "wc -c < big")).json.stdout)).toBe(mebibytes * MIB);
  const download = await bed.fetch(path);
  let length = 0;
  let isSame = true;
  for await (const part of download.body as unknown as AsyncIterable<Uint8Array>) {
    isSame &&= part[0] === chunk[length % 16];
    length += part.length;
    most = Math.max(most, bed.rss());
  }
  expect([length, isSame]).toEqual([mebibytes * MIB, true]);
  return most;
}
