import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type AidoUnderTest, openPlace, output } from "../contract/aido-contract.ts";

const HOSTILE = [
  "ln -s /etc/passwd link",
  "ln -s / up",
  "ln -s link loop && ln -s loop link2",
  "mkfifo pipe",
  "mkdir closed && touch closed/file && chmod 000 closed",
  "mkdir -p deep && cd deep && for i in $(seq 60); do mkdir d && cd d; done",
].join("; ");

/** Workspaces with a real driver beneath them. */
export function workspaceContract(under: AidoUnderTest): void {
  describe(`workspaces, with the ${under.driver} driver`, () => {
    test("S3-83 keep their files from one sandbox to the next, whoever they run as, and from nobody else", async () => {
      await using place = openPlace(under);
      const aido = await place.open();
      const first = await aido.sandboxes.create({ workspace: "data", history: true, ttlMs: 600_000 });
      const fill = "echo kept > file; mkdir -p d/e; printf x > d/e/x; chmod 750 d/e/x; ln -s file link";
      await output(aido, first.id, ["sh", "-c", fill]);
      await aido.sandboxes.stop(first.id);
      await aido.sandboxes.start(first.id);
      expect(await output(aido, first.id, ["cat", "link"])).toBe("kept\n");
      await aido.sandboxes.destroy(first.id);
      const other = await aido.sandboxes.create({ workspace: "other", ttlMs: 600_000 });
      expect(await output(aido, other.id, ["ls", "-A"])).toBe("");
      const next = await aido.sandboxes.create({
        ...{ workspace: "data", history: true, workdir: "/elsewhere", ttlMs: 600_000 },
        // Each sandbox of the local driver has a user of its own.
        ...(under.driver === "docker" ? { user: "1234:1234" } : {}),
      });
      const change = "cat file; stat -c %a d/e/x; readlink link; echo more >> file; rm -r d; cat link";
      expect(await output(aido, next.id, ["sh", "-c", change])).toBe("kept\n750\nfile\nkept\nmore\n");
      const [changed] = await aido.history.list(next.id);
      expect(changed?.files).toEqual(expect.arrayContaining(["file", "d/e/x"]));
      await aido.sandboxes.destroy(next.id);
      await aido.workspaces.remove("data");
      expect(readdirSync(join(place.root, "workspaces"))).toHaveLength(1);
    });

    test("S3-83 take what hostile code left in them to the next sandbox and nothing of the host, and are removed whole", async () => {
      await using place = openPlace(under);
      const aido = await place.open();
      const canary = join(place.root, "canary");
      writeFileSync(canary, "untouched");
      const first = await aido.sandboxes.create({ workspace: "bad", ttlMs: 600_000 });
      await output(aido, first.id, ["sh", "-c", `${HOSTILE}; ln -s ${canary} canary; true`]);
      await aido.sandboxes.destroy(first.id);
      const next = await aido.sandboxes.create({ workspace: "bad", ttlMs: 600_000 });
      const look =
        "ls closed >/dev/null 2>&1 && echo open; cat canary 2>/dev/null; test -p pipe && echo pipe";
      expect(await output(aido, next.id, ["sh", "-c", `${look}; chmod 700 closed; ls closed`])).toBe(
        "pipe\nfile\n",
      );
      await aido.sandboxes.destroy(next.id);
      await aido.workspaces.remove("bad");
      expect(readdirSync(join(place.root, "workspaces"))).toEqual([]);
      expect(existsSync(canary)).toBe(true);
    });

    test("S3-83 go to one of several that want them at once", async () => {
      await using place = openPlace(under);
      const [one, two] = [await place.open(), await place.open()];
      const request = { workspace: "data", ttlMs: 600_000 };
      const asked = await Promise.allSettled([one, two].map((aido) => aido.sandboxes.create(request)));
      expect(asked.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
      const failure = asked.find((each) => each.status === "rejected");
      expect(failure?.reason).toMatchObject({ code: "WORKSPACE_IN_USE" });
      expect(await one.driver.list()).toHaveLength(1);
    });

    test("S3-83 stay with a sandbox that sinks to the warm tier and comes back", async () => {
      await using place = openPlace({ ...under, settings: { ...under.settings, "gc.hotRetention": "0s" } });
      const aido = await place.open();
      const { id } = await aido.sandboxes.create({ workspace: "data" });
      await output(aido, id, ["sh", "-c", "echo kept > file"]);
      await aido.sandboxes.stop(id);
      expect(await aido.gc.collect()).toMatchObject({ warmed: [id], failed: [] });
      await expect(aido.sandboxes.create({ workspace: "data" })).rejects.toMatchObject({
        code: "WORKSPACE_IN_USE",
      });
      await aido.sandboxes.start(id);
      expect(await output(aido, id, ["cat", "file"])).toBe("kept\n");
      await aido.sandboxes.destroy(id);
      const next = await aido.sandboxes.create({ workspace: "data", ttlMs: 600_000 });
      expect(await output(aido, next.id, ["cat", "file"])).toBe("kept\n");
    });
  });
}
