import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fakeBed, SANDBOX } from "../../../test/exec/exec-bed.ts";
import { SshService } from "./ssh-service.ts";

type Bed = Awaited<ReturnType<typeof openBed>>;
let bed: Bed;
beforeEach(async () => {
  bed = await openBed();
});
afterEach(() => bed.close());

describe("files over SSH", () => {
  test("pieces are written at their offsets, gaps are zeros, and what was there stays", async () => {
    await bed.write("old", "0123456789");
    const file = await bed.disk.openWrite("old", KEEP);
    await file.write(4, Buffer.from("AB"));
    await file.write(12, Buffer.from("C"));
    await file.write(0, Buffer.from("x"));
    await file.close();
    expect(await bed.read("old")).toBe("x123AB6789\0\0C");
  });

  test("a file is cut and lengthened, and truncated when it is opened so", async () => {
    await bed.write("file", "0123456789");
    await bed.disk.setAttributes("file", { size: 4 });
    expect(await bed.read("file")).toBe("0123");
    await bed.disk.setAttributes("file", { size: 6 });
    expect(await bed.read("file")).toBe("0123\0\0");
    const whole = await bed.disk.openWrite("file", { ...KEEP, truncate: true });
    await whole.close();
    expect(await bed.read("file")).toBe("");
    const more = await bed.disk.openWrite("file", { ...KEEP, append: true });
    await more.write(0, Buffer.from("a"));
    await more.write(0, Buffer.from("b"));
    await more.close();
    expect(await bed.read("file")).toBe("ab");
  });

  test("what is not closed leaves the file as it was", async () => {
    await bed.write("file", "old");
    const file = await bed.disk.openWrite("file", { ...KEEP, truncate: true });
    await file.write(0, Buffer.from("new"));
    file.abort();
    expect(await bed.read("file")).toBe("old");
  });

  test("a file is read in pieces, in order and out of it, to its end and beyond", async () => {
    await bed.write("file", "0123456789");
    const file = await bed.disk.openRead("file");
    const read = async (at: number, length: number) => (await file.read(at, length)).toString();
    expect([await read(0, 4), await read(4, 4), await read(2, 3)]).toEqual(["0123", "4567", "234"]);
    expect([await read(8, 10), await read(10, 5), await read(100, 5)]).toEqual(["89", "", ""]);
    file.close();
  });

  test("what SFTP refuses is refused although the tools would do it", async () => {
    await bed.write("dir/inside", "x");
    const refusals: [() => Promise<unknown>, string][] = [
      [() => bed.disk.rmdir("dir"), "FILE_EXISTS"],
      [() => bed.disk.rmdir("dir/inside"), "INVALID_PATH"],
      [() => bed.disk.remove("dir"), "INVALID_PATH"],
      [() => bed.disk.remove("missing"), "FILE_NOT_FOUND"],
      [() => bed.disk.mkdir("dir", 0o755), "FILE_EXISTS"],
      [() => bed.disk.mkdir("no/where", 0o755), "FILE_NOT_FOUND"],
      [() => bed.disk.rename("dir/inside", "dir", { replace: false }), "FILE_EXISTS"],
      [() => bed.disk.rename("dir/inside", "no/where", { replace: false }), "FILE_NOT_FOUND"],
      [() => bed.disk.openWrite("no/where", { ...KEEP, create: true }), "FILE_NOT_FOUND"],
      [() => bed.disk.openWrite("missing", KEEP), "FILE_NOT_FOUND"],
      [() => bed.disk.openWrite("dir/inside", { ...KEEP, create: true, exclusive: true }), "FILE_EXISTS"],
      [() => bed.disk.openWrite("dir", KEEP), "INVALID_PATH"],
      [() => bed.disk.openRead("dir"), "INVALID_PATH"],
      [() => bed.disk.lstat("a\0b"), "INVALID_PATH"],
      [() => bed.disk.lstat("x".repeat(5000)), "INVALID_PATH"],
    ];
    for (const [refusal, code] of refusals) await expect(refusal()).rejects.toMatchObject({ code });
    expect(await bed.read("dir/inside")).toBe("x");
  });

  test("links are made, read and resolved inside, and rounds of them are told", async () => {
    await bed.write("dir/file", "x");
    await bed.disk.symlink("dir", "link");
    await bed.disk.symlink("loop", "loop");
    expect(await bed.disk.readlink("link")).toBe("dir");
    expect(await bed.disk.realpath("link/../link/./file")).toBe(`${bed.home}/dir/file`);
    expect(await bed.disk.realpath("/../..")).toBe("/");
    expect(await bed.disk.realpath(".")).toBe(bed.home);
    expect(await bed.disk.realpath("link/new")).toBe(`${bed.home}/dir/new`);
    expect((await bed.disk.stat("link")).type).toBe("directory");
    expect((await bed.disk.lstat("link")).type).toBe("symlink");
    await expect(bed.disk.realpath("loop/x")).rejects.toMatchObject({ code: "INVALID_PATH" });
    await expect(bed.disk.realpath("no/such/thing")).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
    await expect(bed.disk.symlink("x", "link")).rejects.toMatchObject({ code: "FILE_EXISTS" });
  });

  test("modes are set without a change of content", async () => {
    await bed.write("file", "content");
    await bed.disk.setAttributes("file", { mode: 0o600 });
    expect((await bed.disk.lstat("file")).mode & 0o777).toBe(0o600);
    await bed.disk.setAttributes("file", { mode: 0o640, modifiedAt: new Date(1_000_000_000_000) });
    expect((await bed.disk.lstat("file")).mode & 0o777).toBe(0o640);
    expect(await bed.read("file")).toBe("content");
    const names: string[] = [];
    for await (const { path } of bed.disk.list(".")) names.push(path);
    expect(names).toEqual(["file"]);
  });
});

const KEEP = { create: false, exclusive: false, truncate: false, append: false, mode: undefined };

async function openBed() {
  const exec = await fakeBed();
  const { host, store, clock } = exec;
  const record = await store.sandboxes.get(SANDBOX);
  if (record === undefined) throw new Error("the bed has no sandbox");
  const ssh = new SshService({
    store,
    clock,
    supervisors: host.supervisors,
    sandboxes: { resolve: async () => record, resolveRunning: async () => record },
    evidence: { append: async () => undefined, appendSoon: () => undefined },
    endpoint: { read: async () => undefined, write: async () => undefined, remove: async () => undefined },
  });
  const key = { sandboxId: SANDBOX, username: "", fingerprint: "SHA256:x" };
  const disk = await ssh.openDisk(key, new AbortController().signal);
  return {
    disk,
    home: record.workdir,
    write: (path: string, text: string) => exec.files.write(SANDBOX, path, Buffer.from(text)),
    async read(path: string): Promise<string> {
      const chunks: Uint8Array[] = [];
      for await (const chunk of exec.files.read(SANDBOX, path)) chunks.push(chunk);
      return Buffer.concat(chunks).toString();
    },
    close: () => exec[Symbol.asyncDispose](),
  };
}
