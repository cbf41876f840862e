import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ServerBed, until } from "./server-bed.ts";

const SECONDS = Number(process.env["AIDO_LOAD_SECONDS"] ?? 60);
const CLIENTS = 8;
const MIB = 1024 * 1024;

describe("a server under load", () => {
  test(
    "S3-69 many clients at full speed get no error of the server, and nothing stays behind",
    async () => {
      await using bed = await ServerBed.start({ driver: "local", env: { AIDO_LOG_LEVEL: "error" } });
      const begun = Date.now();
      const elapsed = () => (Date.now() - begun) / 1000;
      const wrong: string[] = [];
      let requests = 0;
      let warm = 0;
      const check = <Reply extends { status: number; text: string }>(what: string, reply: Reply): Reply => {
        requests += 1;
        if (reply.status >= 400) wrong.push(`${what}: ${reply.status} ${reply.text.slice(0, 300)}`);
        return reply;
      };
      const client = async (name: number): Promise<void> => {
        for (let round = 0; elapsed() < SECONDS && wrong.length === 0; round += 1) {
          if (elapsed() > SECONDS / 3) warm ||= bed.rss();
          const text = `client ${name} round ${round}`;
          const created = check(
            "create",
            await bed.post("/api/sandbox", { image: "host", history: round % 2 === 0 }),
          );
          if (created.status !== 201) return;
          const id = created.json.containerId;
          const files = { "in.txt": text };
          for (let at = 0; at < 5; at += 1) {
            const ran = check("exec", await bed.exec(id, ["cat", "in.txt"], { files }));
            if (ran.json.stdout !== text) wrong.push(`exec: ${ran.text.slice(0, 300)}`);
          }
          const body = Buffer.alloc(64 * 1024, text);
          const put = await bed.fetch(`/api/sandbox/${id}/files?path=data`, { method: "PUT", body });
          check("write", { status: put.status, text: await put.text() });
          const got = await bed.fetch(`/api/sandbox/${id}/files?path=data`);
          const bytes = Buffer.from(await got.arrayBuffer());
          check("read", { status: got.status, text: bytes.subarray(0, 100).toString() });
          if (!bytes.equals(body)) wrong.push("read: other bytes than were written");
          const [status, execs] = await Promise.all([
            bed.get(`/api/sandbox/${id}`),
            bed.get(`/api/sandbox/${id}/exec`),
            bed.get("/api/sandbox?limit=5"),
          ]);
          check("status", status);
          if (check("execs", execs).json.execs.length !== 5) wrong.push(`execs: ${execs.text.slice(0, 300)}`);
          check("delete", await bed.call("DELETE", `/api/sandbox/${id}`));
        }
      };
      await Promise.all(Array.from({ length: CLIENTS }, (_, name) => client(name)));
      expect(wrong).toEqual([]);
      expect(requests).toBeGreaterThan(CLIENTS * 10);
      // Memory is in use, not lost: it may differ as much as garbage does, not grow with the number of requests.
      expect(bed.rss() - warm).toBeLessThan(64 * MIB);
      expect((await bed.get("/api/sandbox")).json.sandboxes).toEqual([]);
      await until("nothing is left", () => readdirSync(join(bed.dataDir, "sandboxes")).length === 0);
      expect(readdirSync(join(bed.dataDir, "local")).filter((name) => /^[a-z0-9]{8}$/.test(name))).toEqual(
        [],
      );
    },
    (SECONDS + 120) * 1000,
  );
});
