import { execFileSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ServerBed } from "../server/server-bed.ts";

test("S2-46 S2-47 S2-108 the built server takes SSH logins on the port it is given, and `aido ssh` uses it", async () => {
  await using bed = await ServerBed.start({ driver: "local", env: { SIDECAR_SSH_PORT: "0" } });
  const port = /SSH logins on 127\.0\.0\.1:(\d+)\./.exec(bed.stderr)?.[1] ?? "";
  expect(Number(port)).toBeGreaterThan(0);
  expect(statSync(join(bed.dataDir, "ssh_host_ed25519_key")).mode & 0o777).toBe(0o600);
  const key = join(bed.directory, "id");
  execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "me", "-f", key]);
  const publicKey = readFileSync(`${key}.pub`, "utf8");

  const made = await bed.post("/api/jobs/0", {
    ssh_enabled: true,
    ssh_public_key: publicKey,
    image: bed.image,
  });
  expect(made.json, made.text).toMatchObject({ sshPort: Number(port) });
  const id: string = made.json.sandboxId;
  expect((await bed.aido("ssh", id, "--print")).stdout).toBe(`ssh -p ${port} ${id}@127.0.0.1\n`);
  const ran = await bed.aido("ssh", "-i", key, id, "--", "echo hello; exit 5");
  expect(ran, ran.stderr).toMatchObject({ code: 5, stdout: "hello\n" });

  const { sidecarUrl: sidecar_url, token: sidecar_token } = made.json;
  const named = { sidecar_url, sidecar_token, public_key: publicKey, username: "" };
  expect((await bed.post("/api/jobs/41", named)).json).toMatchObject({ sandboxId: id, revoked: true });
  expect((await bed.aido("ssh", "-i", key, id, "--", "true")).code).toBe(255);
  expect((await bed.post("/api/jobs/40", named)).json).toMatchObject({ provisioned: true });
  expect((await bed.aido("--server", bed.url, "ssh", "keys", id)).stdout).toContain("ssh-ed25519");
  expect((await bed.aido("ssh", "-i", key, id, "--", "true")).code).toBe(0);

  await bed.kill();
  const after = await bed.aido("ssh", id, "--print");
  expect(after.stderr).toContain("No server listens for SSH");
  expect(after.code).toBe(125);
});
