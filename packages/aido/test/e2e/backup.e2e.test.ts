import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ServerBed } from "../server/server-bed.ts";
import { AidoProcess } from "./aido-process.ts";

describe.each(["local", "docker"] as const)("aido backup and aido restore, with the %s driver", (driver) => {
  test("S3-79 what a running server holds is backed up, and restored into an empty directory", async () => {
    await using bed = await ServerBed.start({ driver });
    const id = await bed.sandbox();
    await bed.sh(id, "echo first > file");
    await bed.sh(id, "echo second > file");
    const other = await bed.sandbox();
    const gone = await bed.sandbox();
    await bed.call("DELETE", `/api/sandbox/${gone}`);
    const history = (await bed.get(`/api/sandbox/${id}/history`)).json;
    expect(history.history.length).toBeGreaterThanOrEqual(2);

    const place = mkdtempSync(join(tmpdir(), "aido-restored-"));
    try {
      const file = join(place, "backup.tar.gz");
      const made = await bed.aido("backup", file);
      expect(made, made.stderr).toMatchObject({ code: 0 });
      expect(await bed.aido("backup", file)).toMatchObject({ code: 5 });
      expect(await bed.aido("restore", file)).toMatchObject({
        code: 5,
        stderr: expect.stringContaining("is not empty"),
      });
      const dataDir = join(place, "data");
      const { PATH, HOME, DOCKER_HOST } = process.env;
      const env = { PATH, HOME, ...(DOCKER_HOST && { DOCKER_HOST }) };
      const argv = ["--driver", driver, "--data-dir", dataDir, "restore", file];
      await using restoring = new AidoProcess(argv, { cwd: place, env });
      const restored = await restoring.end();
      expect(restored, restored.stderr).toMatchObject({ code: 0 });

      await using there = await ServerBed.start({ driver, dataDir });
      const { sandboxes } = (await there.get("/api/sandbox")).json;
      expect(sandboxes).toMatchObject([other, id].map((containerId) => ({ containerId, status: "stopped" })));
      expect((await there.get(`/api/sandbox/${id}/history`)).json).toEqual(history);
      for (const each of [id, gone]) {
        const evidence = (await there.get(`/api/sandbox/${each}/evidence`)).text;
        expect(evidence).toContain("sandbox.created");
      }
      const verdicts = (await there.get("/api/evidence/verify")).json.verdicts;
      expect(verdicts.map(({ ok }: { ok: boolean }) => ok)).toEqual([true, true, true]);
      const audit = (await there.get(`/api/audit?sandbox=${id}`)).json.entries;
      expect(audit.map(({ operation }: { operation: string }) => operation)).toContain("createSandbox");

      // Both use the same engine: what the copy does is nothing to the original.
      expect((await there.call("DELETE", `/api/sandbox/${other}`)).status).toBe(200);
      expect((await bed.sh(other, "echo here")).json.stdout).toBe("here\n");
      expect((await bed.sh(id, "cat file")).json.stdout).toBe("second\n");
      // The original is lost, and its copy takes its place.
      await bed.call("DELETE", `/api/sandbox/${id}`);
      const started = await there.call("POST", `/api/sandbox/${id}/start`);
      expect(started, started.text).toMatchObject({ status: 200 });
      const back = { executionId: history.history[1].id };
      expect((await there.post(`/api/sandbox/${id}/rollback`, back)).status).toBe(200);
      expect((await there.sh(id, "cat file")).json.stdout).toBe("first\n");
    } finally {
      rmSync(place, { recursive: true, force: true });
    }
  });
});
