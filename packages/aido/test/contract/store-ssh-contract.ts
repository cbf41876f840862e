import { describe, expect, test } from "vitest";
import type { SshKeyRecord } from "../../src/core/ssh/ssh-key-store.ts";
import { START, type StoreUnderTest, sandboxRecord } from "./records.ts";

/** The part of the stores' contract about SSH keys. */
export function storeSshContract(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(`${name} SSH keys`, () => {
    test("a key is kept once for each sandbox and user, as it was first added", async () => {
      await using opened = await open();
      const { sandboxes, sshKeys } = opened.store;
      await sandboxes.insert(sandboxRecord("aaaa"));
      await sandboxes.insert(sandboxRecord("bbbb"));
      const first = sshKey("aaaa", "root", "SHA256:1");
      expect(await sshKeys.add(first)).toEqual(first);
      expect(await sshKeys.add({ ...first, comment: "later", createdAt: new Date(START + 9) })).toEqual(
        first,
      );
      const others = [
        sshKey("aaaa", "", "SHA256:1"),
        sshKey("aaaa", "root", "SHA256:2"),
        sshKey("bbbb", "root", "SHA256:1"),
      ];
      for (const other of others) await sshKeys.add(other);
      expect(await sshKeys.list("aaaa")).toEqual([first, others[0], others[1]]);
      expect(await sshKeys.list("bbbb")).toEqual([others[2]]);
      expect(await sshKeys.get({ sandboxId: "aaaa", username: "", fingerprint: "SHA256:2" })).toBeUndefined();
    });

    test("a key is removed once, and others of its sandbox stay", async () => {
      await using opened = await open();
      const { sandboxes, sshKeys } = opened.store;
      await sandboxes.insert(sandboxRecord("aaaa"));
      await sshKeys.add(sshKey("aaaa", "", "SHA256:1"));
      await sshKeys.add(sshKey("aaaa", "root", "SHA256:1"));
      expect(await sshKeys.remove(sshKey("aaaa", "", "SHA256:1"))).toBe(true);
      expect(await sshKeys.remove(sshKey("aaaa", "", "SHA256:1"))).toBe(false);
      expect(await sshKeys.list("aaaa")).toEqual([sshKey("aaaa", "root", "SHA256:1")]);
    });

    test("the keys of one sandbox are removed together, and another's stay", async () => {
      await using opened = await open();
      const { sandboxes, sshKeys } = opened.store;
      for (const id of ["aaaa", "bbbb"]) {
        await sandboxes.insert(sandboxRecord(id));
        for (const username of ["", "root"]) await sshKeys.add(sshKey(id, username, "SHA256:1"));
      }
      await sshKeys.removeAll("aaaa");
      await sshKeys.removeAll("aaaa");
      expect(await sshKeys.list("aaaa")).toEqual([]);
      expect(await sshKeys.list("bbbb")).toHaveLength(2);
    });

    test("a key needs a sandbox and goes with it", async () => {
      await using opened = await open();
      const { sandboxes, sshKeys } = opened.store;
      const key = sshKey("aaaa", "", "SHA256:1");
      await expect(sshKeys.add(key)).rejects.toMatchObject({ code: "CONTAINER_NOT_FOUND" });
      await sandboxes.insert(sandboxRecord("aaaa"));
      await sshKeys.add(key);
      await sandboxes.remove("aaaa");
      expect(await sshKeys.get(key)).toBeUndefined();
      expect(await sshKeys.list("aaaa")).toEqual([]);
    });
  });
}

function sshKey(sandboxId: string, username: string, fingerprint: string): SshKeyRecord {
  return {
    sandboxId,
    username,
    type: "ssh-ed25519",
    fingerprint,
    publicKey: `ssh-ed25519 ${fingerprint}`,
    comment: "me@laptop",
    createdAt: new Date(START),
  };
}
