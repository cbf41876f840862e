import { generateKeyPairSync } from "node:crypto";
import { expect, test } from "vitest";
import { ApiBed } from "../../test/server/api-bed.ts";

function publicKey(comment = "me@laptop"): string {
  const { x = "" } = generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" });
  const head = Buffer.from("0000000b7373682d6564323535313900000020", "hex");
  return `ssh-ed25519 ${Buffer.concat([head, Buffer.from(x, "base64url")]).toString("base64")} ${comment}`;
}

test("S2-46 S2-47 keys are added once, listed and removed, by the interface and over HTTP alike", async () => {
  await using bed = await ApiBed.open();
  const id = await bed.sandbox();
  const key = publicKey();
  for (const aido of [bed.aido, bed.client()]) {
    const added = await aido.ssh.addKey(id, { publicKey: key });
    expect(added).toMatchObject({
      sandboxId: id,
      username: undefined,
      type: "ssh-ed25519",
      comment: "me@laptop",
    });
    expect(await aido.ssh.addKey(id, { publicKey: key.replace("me@laptop", "again") })).toEqual(added);
    expect(await aido.ssh.keys(id)).toEqual([added]);
    await expect(aido.ssh.address(id)).rejects.toMatchObject({ code: "SSH_NOT_SERVED" });
    await bed.aido.ssh.listens({ host: "0.0.0.0", port: 2222, hostKey: "ssh-ed25519 AAAA" });
    expect(await aido.ssh.address(id, "root")).toMatchObject({ port: 2222, login: `root.${id}` });
    await bed.aido.ssh.listens(undefined);
    expect(await aido.ssh.removeKey(id, { key: added.fingerprint })).toBe(true);
    expect(await aido.ssh.removeKey(id, { key })).toBe(false);
    expect(await aido.ssh.keys(id)).toEqual([]);
  }
  expect((await bed.get(`/api/sandbox/${id}/ssh`)).json.error.code).toBe("SSH_NOT_SERVED");
});

test("a server that listens everywhere is reached by the name it was asked under", async () => {
  await using bed = await ApiBed.open();
  const id = await bed.sandbox();
  await bed.aido.ssh.listens({ host: "0.0.0.0", port: 2222, hostKey: "ssh-ed25519 AAAA" });
  expect((await bed.client().ssh.address(id)).host).toBe("localhost");
});

test("somebody else's sandbox takes no keys, and wrong keys and users are told", async () => {
  await using bed = await ApiBed.open({ guarded: true });
  const [mine, theirs] = [await bed.key("me"), await bed.key("they")];
  const id = await bed.sandbox(mine);
  const path = `/api/sandbox/${id}/ssh-keys`;
  const refused = await bed.post(path, { publicKey: publicKey() }, { key: theirs });
  expect(refused.status).toBe(404);
  expect((await bed.get(path, { key: theirs })).status).toBe(404);
  for (const body of [
    {},
    { publicKey: "" },
    { publicKey: `command="sh" ${publicKey()}` },
    { publicKey: `${publicKey()}\n${publicKey()}` },
    { publicKey: publicKey(), username: "a b" },
    { publicKey: publicKey(), username: "../root" },
    { publicKey: publicKey(), username: "x".repeat(33) },
  ]) {
    const reply = await bed.post(path, body, { key: mine });
    expect(reply.status, JSON.stringify(body)).toBe(400);
    expect(reply.json.error.code).toBe("VALIDATION_ERROR");
  }
  expect((await bed.get(path, { key: mine })).json).toEqual({ keys: [] });
});

test("a sandbox has at most a hundred keys", async () => {
  await using bed = await ApiBed.open();
  const id = await bed.sandbox();
  for (let count = 0; count < 100; count += 1) await bed.aido.ssh.addKey(id, { publicKey: publicKey() });
  const one = bed.aido.ssh.addKey(id, { publicKey: publicKey() });
  await expect(one).rejects.toMatchObject({ code: "QUOTA_EXCEEDED" });
});

test("a login by name is the one sandbox of that name which lets the key in, whoever else has the name", async () => {
  await using bed = await ApiBed.open({ guarded: true });
  const [mine, other] = [await bed.key("me"), await bed.key("them")];
  const [own, theirs] = [await bed.sandbox(mine, { name: "box" }), await bed.sandbox(other, { name: "box" })];
  const key = publicKey();
  const blob = Buffer.from(key.split(" ")[1] ?? "", "base64");
  const { ssh } = bed.aido;
  await ssh.addKey(own, { publicKey: key });
  expect(await ssh.authorize("box", blob)).toMatchObject({ sandboxId: own });
  expect(await ssh.authorize(theirs, blob)).toBeUndefined();
  // Theirs lets it in too: the name does not say any more which is meant.
  await ssh.addKey(theirs, { publicKey: key });
  expect(await ssh.authorize("box", blob)).toBeUndefined();
  expect(await ssh.authorize(own, blob)).toMatchObject({ sandboxId: own });
});
