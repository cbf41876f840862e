import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { TcpProxy } from "../backends/tcp-proxy.ts";
import { type Answer, ServerBed, until } from "./server-bed.ts";

const run = promisify(execFile);

describe("what goes wrong beneath a server", () => {
  test("S3-52 an engine that is away is told, and used again when it is back", async () => {
    await using engine = await TcpProxy.to({ path: "/var/run/docker.sock" });
    engine.isRefusing = true;
    const env = { DOCKER_HOST: `tcp://127.0.0.1:${engine.port}` };
    await using bed = await ServerBed.start({ driver: "docker", env });
    const refused = await bed.post("/api/sandbox", { image: bed.image });
    expect(refused.status).toBe(503);
    expect(refused.json.error).toMatchObject({
      code: "RUNTIME_UNAVAILABLE",
      details: { cause: expect.any(String) },
    });
    expect(refused.headers.get("retry-after")).toBe("1");
    const unready = await bed.get("/ready");
    expect(unready.status).toBe(503);
    expect(unready.json).toEqual({ status: "unavailable", failing: ["driver docker"] });
    expect((await bed.get("/health")).status).toBe(200);

    engine.isRefusing = false;
    await until("it is ready", async () => (await bed.get("/ready")).status === 200);
    const id = await bed.sandbox();
    expect((await bed.sh(id, "echo works")).json.stdout).toBe("works\n");

    // An end that happens while the engine is away is seen when it is back, without anybody asking for it.
    const { json } = await bed.get(`/api/sandbox/${id}`);
    engine.isRefusing = true;
    engine.cut();
    await until("it is not ready", async () => (await bed.get("/ready")).status === 503);
    await run("docker", ["kill", json.engineId]);
    engine.isRefusing = false;
    await until("the end is on record", async () => {
      const evidence = await bed.get(`/api/sandbox/${id}/evidence`);
      return /sandbox\.(ended|stopped|lost)/.test(evidence.text);
    });
  });

  test("a full disk is told as one", async () => {
    const disk = mkdtempSync(join(tmpdir(), "aido-disk-"));
    await run("mount", ["-t", "tmpfs", "-o", "size=4m", "tmpfs", disk]);
    try {
      await using bed = await ServerBed.start({ driver: "docker", dataDir: join(disk, "data") });
      const id = await bed.sandbox({ history: false });
      const refused: Answer[] = [];
      // What aido keeps free for such a time is used up first.
      await until("there is no space left", async () => {
        const fill = ["if=/dev/zero", `of=${join(disk, "ballast")}`, "bs=4k", "oflag=append", "conv=notrunc"];
        await run("dd", fill).catch(() => undefined);
        const reply = await bed.post("/api/sandbox", { image: bed.image, history: false });
        if (reply.status !== 201) refused.push(reply);
        return refused.length > 0;
      });
      const [reply] = refused;
      if (reply === undefined) throw new Error("every request was granted");
      expect(reply.status).toBe(503);
      expect(reply.json.error).toMatchObject({ code: "DISK_FULL", hint: expect.any(String) });
      expect((await bed.get("/health")).status).toBe(200);
      rmSync(join(disk, "ballast"));
      expect((await bed.sh(id, "echo works again")).json.stdout).toBe("works again\n");
    } finally {
      await run("umount", [disk]);
      rmSync(disk, { recursive: true, force: true });
    }
  });
});
