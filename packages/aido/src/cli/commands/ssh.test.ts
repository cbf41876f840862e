import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SshKey } from "@aido/sdk";
import { afterEach, beforeEach, expect, test } from "vitest";
import { fakeBackend } from "../testing/fake-backend.ts";
import { fakeContext } from "../testing/fake-context.ts";
import { addKey, connect, listKeys, removeKey } from "./ssh.ts";

const KEY: SshKey = {
  sandboxId: "abcd1234",
  username: undefined,
  type: "ssh-ed25519",
  fingerprint: "SHA256:abc",
  publicKey: "ssh-ed25519 AAAA",
  comment: "me\u001b[2J",
  createdAt: new Date("2026-01-01T00:00:00Z"),
};
const ADDRESS = { host: "127.0.0.1", port: 2222, login: "abcd1234", hostKey: "ssh-ed25519 AAAA" };

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), "aido-ssh-cli-"));
});
afterEach(() => rmSync(cwd, { recursive: true }));

test("a key is taken from the line, from a file, and from ~/.ssh", async () => {
  const asked: string[] = [];
  const backend = fakeBackend({
    ssh: {
      addKey: async (_, { publicKey }) => {
        asked.push(publicKey);
        return KEY;
      },
    },
  });
  const context = fakeContext({ backend, cwd, env: { HOME: cwd } });
  await expect(addKey(context, "box", undefined, {})).rejects.toMatchObject({ code: "INPUT_NOT_FOUND" });
  writeFileSync(join(cwd, "ci.pub"), "ssh-ed25519 FILE");
  writeFileSync(join(cwd, "ci"), "-----BEGIN OPENSSH PRIVATE KEY-----");
  expect(await addKey(context, "box", "ci.pub", {})).toBe(0);
  expect(await addKey(context, "box", "ssh-ed25519 LINE", {})).toBe(0);
  await expect(addKey(context, "box", "ci", {})).rejects.toMatchObject({ code: "VALIDATION_ERROR" });
  expect(asked).toEqual(["ssh-ed25519 FILE", "ssh-ed25519 LINE"]);
  expect(context.stdout.text).toBe("SHA256:abc\nSHA256:abc\n");
});

test("keys are listed without what their comments would do to a terminal", async () => {
  const context = fakeContext({ backend: fakeBackend({ ssh: { keys: async () => [KEY] } }) });
  await listKeys(context, "box");
  expect(context.stdout.text).toContain("SHA256:abc");
  expect(context.stdout.text).not.toContain("\u001b");
});

test("a key that is not there cannot be revoked", async () => {
  const backend = fakeBackend({ ssh: { removeKey: async () => false } });
  const removing = removeKey(fakeContext({ backend }), "box", "SHA256:abc", {});
  await expect(removing).rejects.toMatchObject({ code: "RESOURCE_NOT_FOUND" });
});

test("the command that logs in is printed", async () => {
  const context = fakeContext({ backend: fakeBackend({ ssh: { address: async () => ADDRESS } }) });
  expect(await connect(context, "box", [], { print: true, identity: "key" })).toBe(0);
  expect(context.stdout.text).toBe("ssh -i key -p 2222 abcd1234@127.0.0.1\n");
});
