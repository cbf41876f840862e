import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import {
  chmod,
  copyFile,
  link,
  mkdir,
  readdir,
  readFile,
  rm,
  symlink,
  truncate,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { gunzipSync, gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { S3Server } from "../backends/s3-server.ts";
import { SANDBOX } from "../exec/exec-bed.ts";
import { openSnapshotBed, type SnapshotBed } from "./snapshot-bed.ts";
import { WebServer } from "./web-server.ts";

const run = promisify(execFile);
const isRoot = process.getuid?.() === 0;

async function fill(workdir: string): Promise<void> {
  await mkdir(join(workdir, "dir/empty"), { recursive: true });
  await writeFile(join(workdir, "dir/ünï code\n"), "text");
  await writeFile(join(workdir, "run.sh"), "#!/bin/sh\n", { mode: 0o755 });
  await writeFile(join(workdir, "secret"), "s", { mode: 0o600 });
  await symlink("/etc/passwd", join(workdir, "absolute"));
  await symlink("../..", join(workdir, "up"));
  await link(join(workdir, "secret"), join(workdir, "dir/same"));
  await writeFile(join(workdir, `${"long".repeat(60)}`), "long");
  await writeFile(join(workdir, "large"), randomBytes(3_000_000));
  await writeFile(Buffer.concat([Buffer.from(`${workdir}/odd-`), Buffer.from([0xff, 0xfe])]), "odd");
}

/** Every name, kind, mode, target and content, but not the times of directories. */
async function fingerprint(workdir: string): Promise<string> {
  const list = "find . -mindepth 1 -printf '%P\\0%y\\0%m\\0%l\\0%n\\n' | LC_ALL=C sort";
  const sums = "find . -type f -print0 | LC_ALL=C sort -z | xargs -0 -r sha256sum";
  const { stdout } = await run("sh", ["-c", `${list}; ${sums}`], { cwd: workdir });
  return createHash("sha256").update(stdout).digest("hex");
}

async function change(workdir: string): Promise<void> {
  await writeFile(join(workdir, "large"), "small now");
  await rm(join(workdir, "dir"), { recursive: true });
  await writeFile(join(workdir, "dir"), "a file where a directory was");
  await mkdir(join(workdir, "secret-dir"));
  await writeFile(join(workdir, "secret-dir/later"), "later");
  await writeFile(Buffer.concat([Buffer.from(`${workdir}/later-`), Buffer.from([0xfd])]), "odd");
}

const objectOf = (url: string) => fileURLToPath(url);

test("S2-17 S2-23 a snapshot brings every file back as it was, and takes away what came later", async () => {
  await using bed = await openSnapshotBed();
  await fill(bed.workdir);
  const before = await fingerprint(bed.workdir);
  const taken = await bed.snapshots.take(SANDBOX);
  expect(taken.url).toMatch(new RegExp(`/${SANDBOX}/snapshot\\.tar\\.(gz|zst)$`));
  const object = await readFile(objectOf(taken.url));
  expect(createHash("sha256").update(object).digest("hex")).toBe(taken.sha256);
  expect(object.length).toBe(taken.bytes);
  await change(bed.workdir);
  await bed.snapshots.restore(SANDBOX, taken.url, { sha256: taken.sha256 });
  expect(await fingerprint(bed.workdir)).toBe(before);
  expect(bed.at.bed.told.map(({ event }) => event)).toEqual(["snapshot.taken", "snapshot.restored"]);
});

test("a snapshot is a tar that any tar unpacks, and its manifest says what it is", async () => {
  await using bed = await openSnapshotBed();
  await writeFile(join(bed.workdir, "a"), "content");
  const { url } = await bed.snapshots.take(SANDBOX);
  const target = join(bed.objects, "plain");
  await mkdir(target);
  await run("tar", ["-xf", objectOf(url), "-C", target]);
  expect(await readFile(join(target, "a"), "utf8")).toBe("content");
  const { stdout } = await run("tar", ["-i", "-xOf", objectOf(url), "aido-snapshot.json"]);
  expect(JSON.parse(stdout)).toMatchObject({
    version: 1,
    sandboxId: SANDBOX,
    image: "busybox",
    workdir: bed.workdir,
    workspace: { entries: 1, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
    state: null,
  });
});

test("an empty workspace is a snapshot too", async () => {
  await using bed = await openSnapshotBed();
  const { url } = await bed.snapshots.take(SANDBOX);
  await writeFile(join(bed.workdir, "later"), "x");
  await bed.snapshots.restore(SANDBOX, url);
  expect(await fingerprint(bed.workdir)).toBe(createHash("sha256").update("").digest("hex"));
});

/** Puts something else where the object is, and expects that nothing of the sandbox changes. */
async function refuses(
  bed: SnapshotBed,
  url: string,
  sha256: string | undefined,
  code = "OBJECT_BROKEN",
): Promise<void> {
  const before = await fingerprint(bed.workdir);
  await expect(bed.snapshots.restore(SANDBOX, url, { sha256 })).rejects.toMatchObject({ code });
  expect(await fingerprint(bed.workdir)).toBe(before);
}

test("an object that is cut off at any place is refused and nothing is lost", async () => {
  await using bed = await openSnapshotBed();
  await fill(bed.workdir);
  const { url } = await bed.snapshots.take(SANDBOX);
  const whole = await readFile(objectOf(url));
  await change(bed.workdir);
  for (const length of [
    0,
    1,
    3,
    10,
    1000,
    100_000,
    whole.length >> 1,
    whole.length - 5000,
    whole.length - 9,
    whole.length - 1,
  ]) {
    await writeFile(objectOf(url), whole.subarray(0, length));
    await refuses(bed, url, undefined);
  }
});

test("an object that was changed anywhere is refused and nothing is lost", async () => {
  await using bed = await openSnapshotBed();
  await fill(bed.workdir);
  const { url, sha256 } = await bed.snapshots.take(SANDBOX);
  const whole = await readFile(objectOf(url));
  for (const at of [0, 2, 12, 100, 5_000, whole.length >> 1, whole.length - 200, whole.length - 4]) {
    const changed = Buffer.from(whole);
    changed[at] = (changed[at] ?? 0) ^ 0x10;
    await writeFile(objectOf(url), changed);
    await refuses(bed, url, sha256);
  }
  await writeFile(objectOf(url), Buffer.concat([whole, Buffer.from("more")]));
  await refuses(bed, url, sha256);
});

test("an object that is well packed but holds other files is known by its hash and by its manifest", async () => {
  await using bed = await openSnapshotBed();
  await writeFile(join(bed.workdir, "a"), "good content");
  const { url, sha256 } = await bed.snapshots.take(SANDBOX);
  if (!url.endsWith(".gz")) return;
  const plain = gunzipSync(await readFile(objectOf(url)));
  plain.write("evil content", plain.indexOf("good content"));
  await writeFile(objectOf(url), gzipSync(plain));
  await refuses(bed, url, sha256);
  await refuses(bed, url, undefined);
  await writeFile(objectOf(url), gzipSync(Buffer.from("no tar at all")));
  await refuses(bed, url, undefined);
  await writeFile(objectOf(url), "no archive at all");
  await refuses(bed, url, undefined);
  await rm(objectOf(url));
  await refuses(bed, url, undefined, "OBJECT_NOT_FOUND");
});

test("a small object that unfolds to more than is allowed is refused", async () => {
  await using bed = await openSnapshotBed();
  await writeFile(join(bed.workdir, "zeros"), "");
  await truncate(join(bed.workdir, "zeros"), 30_000_000);
  const { url, bytes } = await bed.snapshots.take(SANDBOX);
  expect(bytes).toBeLessThan(1_000_000);
  await using small = await openSnapshotBed({ AIDO_SNAPSHOT_MAX_SIZE: "10m" });
  await mkdir(join(small.objects, SANDBOX));
  const copy = join(small.objects, SANDBOX, "bomb.tar.gz");
  await copyFile(objectOf(url), copy);
  await refuses(small, pathToFileURL(copy).href, undefined, "PAYLOAD_TOO_LARGE");
  await truncate(join(small.workdir, "x"), 0).catch(() => undefined);
  await writeFile(join(small.workdir, "x"), Buffer.alloc(11_000_000));
  await expect(small.snapshots.take(SANDBOX)).rejects.toMatchObject({ code: "PAYLOAD_TOO_LARGE" });
});

test("S2-93 the flags choose what is held, and neither is a mistake", async () => {
  await using bed = await openSnapshotBed();
  await writeFile(join(bed.workdir, "a"), "1");
  const neither = { includeWorkspace: false, includeState: false };
  await expect(bed.snapshots.take(SANDBOX, neither)).rejects.toMatchObject({ code: "VALIDATION_ERROR" });
  const onlyState = { includeWorkspace: false, includeState: true };
  await expect(bed.snapshots.take(SANDBOX, onlyState)).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
  const both = await bed.snapshots.take(SANDBOX, { includeState: true });
  await writeFile(join(bed.workdir, "a"), "2");
  await bed.snapshots.restore(SANDBOX, both.url, { sha256: both.sha256 });
  expect(await readFile(join(bed.workdir, "a"), "utf8")).toBe("1");
});

test("without a destination and without a prefix nothing is taken", async () => {
  await using bed = await openSnapshotBed({ AIDO_SNAPSHOT_PREFIX: "" });
  await expect(bed.snapshots.take(SANDBOX)).rejects.toMatchObject({
    code: "VALIDATION_ERROR",
    hint: expect.stringContaining("AIDO_SNAPSHOT_PREFIX"),
  });
});

test("a failing tar refuses the snapshot, and the one before it stays", async () => {
  await using bed = await openSnapshotBed();
  await writeFile(join(bed.workdir, "a"), "1");
  const { url } = await bed.snapshots.take(SANDBOX);
  const before = await readFile(objectOf(url));
  await rm(bed.workdir, { recursive: true });
  await expect(bed.snapshots.take(SANDBOX)).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
  expect((await readFile(objectOf(url))).equals(before)).toBe(true);
  await mkdir(bed.workdir);
});

test("nobody writes to or reads from another sandbox's place beneath the operator's prefix", async () => {
  await using bed = await openSnapshotBed();
  const other = pathToFileURL(join(bed.objects, "other/snapshot.tar.gz")).href;
  await expect(bed.snapshots.take(SANDBOX, { destination: other })).rejects.toMatchObject({
    code: "DESTINATION_REFUSED",
  });
  await expect(bed.snapshots.restore(SANDBOX, other)).rejects.toMatchObject({ code: "DESTINATION_REFUSED" });
});

test("S2-66 S2-67 a user's destination is written and read, and never removed; the operator's is", async () => {
  await using web = await WebServer.start();
  await using bed = await openSnapshotBed({ AIDO_SNAPSHOT_ALLOW: `127.0.0.1:${web.port}` });
  await writeFile(join(bed.workdir, "a"), "1");
  const users = await bed.snapshots.take(SANDBOX, { destination: `${web.url}/mine/?signature=secret` });
  expect(users.url).toMatch(/\/mine\/sbx1\/snapshot\.tar\.\w+\?signature=secret$/);
  expect(JSON.stringify(bed.at.bed.told)).not.toContain("secret");
  expect(bed.snapshots.isOperatorManaged(users.url)).toBe(false);
  expect(await bed.snapshots.remove(users.url)).toBe(false);
  expect(web.objects.size).toBe(1);
  await writeFile(join(bed.workdir, "a"), "2");
  await bed.snapshots.restore(SANDBOX, users.url, { sha256: users.sha256 });
  expect(await readFile(join(bed.workdir, "a"), "utf8")).toBe("1");
  const own = await bed.snapshots.take(SANDBOX);
  expect(await bed.snapshots.remove(own.url)).toBe(true);
  expect(await bed.snapshots.remove(own.url)).toBe(true);
  await expect(readFile(objectOf(own.url))).rejects.toMatchObject({ code: "ENOENT" });
  expect(await readdir(bed.objects)).not.toContain(SANDBOX);
});

test("an upload that is cancelled midway leaves nothing", async () => {
  await using bed = await openSnapshotBed();
  await writeFile(join(bed.workdir, "large"), randomBytes(20_000_000));
  const controller = new AbortController();
  const taking = bed.snapshots.take(SANDBOX, {
    signal: controller.signal,
    onProgress: () => setImmediate(() => controller.abort()),
  });
  await expect(taking).rejects.toThrow();
  const { stdout } = await run("find", [bed.objects, "-type", "f"]);
  expect(stdout).toBe("");
});

test("a restore that is cancelled midway leaves the files as they were, and nothing beside them", async () => {
  await using bed = await openSnapshotBed();
  for (let n = 0; n < 400; n += 1) await writeFile(join(bed.workdir, `${n}`), randomBytes(50_000));
  const taken = await bed.snapshots.take(SANDBOX);
  await writeFile(join(bed.workdir, "0"), "changed");
  const before = await fingerprint(bed.workdir);
  const names = (await readdir(bed.workdir)).length;
  const controller = new AbortController();
  const restoring = bed.snapshots
    .restore(SANDBOX, taken.url, { signal: controller.signal })
    .catch(() => "cancelled");
  while ((await readdir(bed.workdir)).length === names) await turn();
  controller.abort();
  expect(await restoring).toBe("cancelled");
  expect(await fingerprint(bed.workdir)).toBe(before);
});

test("S2-136 a snapshot goes to a real S3 server in parts and comes back", async () => {
  await using server = await S3Server.start();
  await using bed = await openSnapshotBed({ ...server.env, AIDO_SNAPSHOT_PREFIX: "s3://snapshots/operator" });
  await fill(bed.workdir);
  await writeFile(join(bed.workdir, "larger"), randomBytes(20_000_000));
  const before = await fingerprint(bed.workdir);
  const taken = await bed.snapshots.take(SANDBOX);
  expect(taken.url).toMatch(/^s3:\/\/snapshots\/operator\/sbx1\/snapshot\.tar\./);
  await change(bed.workdir);
  await bed.snapshots.restore(SANDBOX, taken.url, { sha256: taken.sha256 });
  expect(await fingerprint(bed.workdir)).toBe(before);
  expect(await bed.snapshots.remove(taken.url)).toBe(true);
  await expect(bed.snapshots.restore(SANDBOX, taken.url)).rejects.toMatchObject({ code: "OBJECT_NOT_FOUND" });
}, 120_000);

async function smallDisk(path: string, size: string): Promise<AsyncDisposable> {
  await mkdir(path, { recursive: true });
  await run("mount", ["-t", "tmpfs", "-o", `size=${size}`, "tmpfs", path]);
  return { [Symbol.asyncDispose]: async () => void (await run("umount", ["-l", path])) };
}

test.runIf(isRoot)(
  "a disk that is full during a snapshot is told, and the snapshot before it stays",
  async () => {
    await using bed = await openSnapshotBed();
    await using _disk = await smallDisk(join(bed.objects, SANDBOX), "2m");
    await writeFile(join(bed.workdir, "a"), "1");
    const { url, sha256 } = await bed.snapshots.take(SANDBOX);
    await writeFile(join(bed.workdir, "large"), randomBytes(8_000_000));
    await expect(bed.snapshots.take(SANDBOX)).rejects.toMatchObject({
      code: expect.stringMatching(/ENOSPC|DISK_FULL/),
    });
    await bed.snapshots.restore(SANDBOX, url, { sha256 });
    expect(await readFile(join(bed.workdir, "a"), "utf8")).toBe("1");
  },
);

test.runIf(isRoot)("a sandbox without room for what comes back keeps what it has", async () => {
  await using bed = await openSnapshotBed();
  await writeFile(join(bed.workdir, "large"), randomBytes(4_000_000));
  const { url, sha256 } = await bed.snapshots.take(SANDBOX);
  await rm(join(bed.workdir, "large"));
  await using _disk = await smallDisk(bed.workdir, "2m");
  await writeFile(join(bed.workdir, "precious"), "precious");
  await chmod(bed.workdir, 0o755);
  await refuses(bed, url, sha256, "DISK_FULL");
});
