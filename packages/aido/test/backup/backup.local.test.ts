import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { backUp, restore } from "../../src/compose/backup.ts";
import type { CoreAido } from "../../src/core/core-aido.ts";
import { openPlace, output } from "../contract/aido-contract.ts";

const UNDER = { driver: "local", image: "bash" } as const;
const now = () => ({ version: "0", now: new Date() });

/** What a hostile program can leave in its directory. */
const MESS = [
  "ln -s /etc/passwd absolute; ln -s ../../../../../etc up; ln -s loop loop; mkfifo pipe",
  "mkdir closed && touch closed/in && chmod 000 closed",
  "d=deep; for i in $(seq 1200); do mkdir $d && cd $d || exit 1; done",
].join("\n");

describe("a backup", () => {
  test("S3-79 restored elsewhere has the same records, evidence, history and files, and nothing runs", async () => {
    await using place = openPlace(UNDER);
    const aido = await place.open();
    const kept = await aido.sandboxes.create({
      name: "kept",
      history: true,
      ttlMs: 600_000,
      labels: { a: "b" },
    });
    await output(aido, kept.id, ["sh", "-c", "echo content > file; mkdir sub; ln -s ../file sub/link"]);
    await output(aido, kept.id, ["sh", "-c", "echo more >> file"]);
    const gone = await aido.sandboxes.create({ ttlMs: 600_000 });
    await aido.sandboxes.destroy(gone.id);
    const before = { history: await aido.history.list(kept.id), evidence: await events(aido, kept.id) };

    await using there = openPlace(UNDER);
    const file = join(there.root, "..", "backup.tar.gz");
    const made = await backUp({ dataDir: place.root, file, ...now() });
    expect(statSync(file)).toMatchObject({ size: made.bytes });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(place.root).filter((name) => name.startsWith(".backup"))).toEqual([]);
    expect(await restore({ dataDir: there.root, file, ...now() })).toMatchObject({ sandboxes: 1 });

    const restored = await there.open();
    expect(await restored.sandboxes.list()).toMatchObject([
      { id: kept.id, name: "kept", state: "stopped", endReason: "lost", labels: { a: "b" } },
    ]);
    expect(await restored.history.list(kept.id)).toEqual(before.history);
    expect((await events(restored, kept.id)).slice(0, before.evidence.length)).toEqual(before.evidence);
    const verdicts = await restored.evidence.verify();
    expect(verdicts.map(({ ok, sandboxId }) => [sandboxId, ok]).sort()).toEqual(
      [kept.id, gone.id].sort().map((id) => [id, true]),
    );
    // The original goes on; the copy is a sandbox of its own.
    expect(await aido.sandboxes.list()).toMatchObject([{ id: kept.id, state: "running" }]);
    await restored.sandboxes.start("kept");
    expect(await output(restored, kept.id, ["cat", "sub/link"])).toBe("content\nmore\n");
    expect(await output(aido, kept.id, ["cat", "file"])).toBe("content\nmore\n");
    await restored.sandboxes.destroy("kept");
    expect(await output(aido, kept.id, ["echo", "alive"])).toBe("alive\n");
  });

  test("of a data directory in use is good at one moment", async () => {
    await using place = openPlace(UNDER);
    const aido = await place.open();
    const { id } = await aido.sandboxes.create({ ttlMs: 600_000 });
    const stop = new AbortController();
    const busy = (async () => {
      while (!stop.signal.aborted) await output(aido, id, ["sh", "-c", "echo $RANDOM >> log"]);
    })();
    await using there = openPlace(UNDER);
    const file = join(there.root, "..", "backup.tar");
    await backUp({ dataDir: place.root, file, ...now() });
    stop.abort();
    await busy;
    await restore({ dataDir: there.root, file, ...now() });
    const restored = await there.open();
    expect(await restored.evidence.verify()).toMatchObject([{ ok: true }]);
    for (const exec of await restored.execs.list(id)) expect(exec.status).not.toBe("running");
  });

  test("takes what hostile code left as it is and follows none of its links", async () => {
    await using place = openPlace(UNDER);
    const aido = await place.open();
    const { id } = await aido.sandboxes.create({ ttlMs: 600_000 });
    await output(aido, id, ["sh", "-c", MESS]);
    await using there = openPlace(UNDER);
    const file = join(there.root, "..", "backup.tar");
    await backUp({ dataDir: place.root, file, ...now() });
    const { skipped } = await restore({ dataDir: there.root, file, ...now() });
    expect(skipped).toBeGreaterThan(0);
    const work = join(there.root, "local", id, "work");
    expect(readlinkSync(join(work, "absolute"))).toBe("/etc/passwd");
    expect(readlinkSync(join(work, "up"))).toBe("../../../../../etc");
    expect(statSync(join(work, "pipe")).isFIFO()).toBe(true);
    expect(readdirSync(join(there.root, "local", id, "run"))).toEqual([]);
    const restored = await there.open();
    await restored.sandboxes.start(id);
    // As deep as a path can be; what lies below is left out and does not make the rest fail.
    const count = "d=deep; n=0; while cd $d 2>/dev/null; do n=$((n+1)); done; echo $n";
    expect(Number(await output(restored, id, ["sh", "-c", count]))).toBeGreaterThan(500);
  });

  test("is refused where it would hide, replace or mix something", async () => {
    await using place = openPlace(UNDER);
    const directory = mkdtempSync(join(tmpdir(), "aido-backup-"));
    try {
      const file = join(directory, "backup.tar");
      const code = (work: Promise<unknown>) =>
        work.then(
          () => "done",
          (thrown: { code: string }) => thrown.code,
        );
      expect(await code(backUp({ dataDir: place.root, file, ...now() }))).toBe("RESOURCE_NOT_FOUND");
      await place.open();
      expect(await code(backUp({ dataDir: place.root, file: join(place.root, "x.tar"), ...now() }))).toBe(
        "INVALID_PATH",
      );
      expect(await code(backUp({ dataDir: place.root, file, ...now() }))).toBe("done");
      expect(await code(backUp({ dataDir: place.root, file, ...now() }))).toBe("FILE_EXISTS");
      expect(await code(restore({ dataDir: place.root, file, ...now() }))).toBe("FILE_EXISTS");
      const other = join(directory, "other.tar");
      writeFileSync(other, "not an archive");
      const target = join(directory, "target");
      expect(await code(restore({ dataDir: target, file: other, ...now() }))).toBe("VALIDATION_ERROR");
      expect(await code(restore({ dataDir: target, file: join(directory, "none"), ...now() }))).toBe(
        "VALIDATION_ERROR",
      );
      expect(existsSync(target)).toBe(false);
      mkdirSync(target);
      expect(await code(restore({ dataDir: target, file, ...now() }))).toBe("done");
      expect(readdirSync(directory).sort()).toEqual(["backup.tar", "other.tar", "target"]);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});

async function events(aido: CoreAido, id: string): Promise<unknown[]> {
  const entries: unknown[] = [];
  for await (const entry of aido.evidence.read(id)) entries.push(entry);
  return entries;
}
