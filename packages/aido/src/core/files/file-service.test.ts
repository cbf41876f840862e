import { describe, expect, it } from "vitest";
import { fakeBed, SANDBOX, until } from "../../../test/exec/exec-bed.ts";

async function everything(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return Buffer.concat(parts);
}

async function* inParts(...parts: Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* parts;
}

describe("files", () => {
  it("are written whole, with parents, and read back", async () => {
    await using bed = await fakeBed();
    const content = Buffer.alloc(1_500_000, "0123456789");
    await bed.files.write(SANDBOX, "a/b/c.bin", content, { mode: 0o600 });
    expect((await everything(bed.files.read(SANDBOX, "a/b/c.bin"))).equals(content)).toBe(true);
    expect((await everything(bed.files.read(SANDBOX, "/work/a/b/c.bin"))).equals(content)).toBe(true);
    const parts = inParts(Buffer.from("one "), Buffer.from("two"));
    await bed.files.write(SANDBOX, "a/b/c.bin", parts);
    expect((await everything(bed.files.read(SANDBOX, "a/b/c.bin"))).toString()).toBe("one two");
    expect(await bed.files.stat(SANDBOX, "a/b/c.bin")).toMatchObject({
      path: "a/b/c.bin",
      type: "file",
      size: 7,
      mode: 0o600,
      target: undefined,
    });
  });

  it("are listed, moved and removed", async () => {
    await using bed = await fakeBed();
    await bed.files.write(SANDBOX, "d/x", Buffer.from("x"));
    await bed.files.mkdir(SANDBOX, "d/sub");
    await bed.driver.files(SANDBOX).symlink("/work", "d/link", "x");
    const names = async (recursive: boolean) =>
      (await bed.files.list(SANDBOX, "", { recursive })).map(({ path, type }) => `${path}:${type}`);
    expect(await names(false)).toEqual(["d:directory"]);
    expect(await names(true)).toEqual(["d:directory", "d/link:symlink", "d/sub:directory", "d/x:file"]);
    expect(await bed.files.stat(SANDBOX, "d/link")).toMatchObject({ type: "symlink", target: "x" });
    await bed.files.move(SANDBOX, "d/x", "/work/new/y");
    await bed.files.move(SANDBOX, "new/y", "new/z");
    await bed.files.remove(SANDBOX, "d");
    await bed.files.remove(SANDBOX, "d");
    expect(await names(true)).toEqual(["new:directory", "new/z:file"]);
  });

  it("that are not there or are something else are told apart", async () => {
    await using bed = await fakeBed();
    await bed.files.mkdir(SANDBOX, "dir");
    await expect(everything(bed.files.read(SANDBOX, "none"))).rejects.toMatchObject({
      code: "FILE_NOT_FOUND",
    });
    await expect(everything(bed.files.read(SANDBOX, "dir"))).rejects.toMatchObject({ code: "INVALID_PATH" });
    await expect(bed.files.stat(SANDBOX, "none")).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
    await expect(bed.files.list(SANDBOX, "none")).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
    await expect(bed.files.move(SANDBOX, "none", "x")).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
  });

  it("with paths that cannot be are refused before the sandbox is asked", async () => {
    await using bed = await fakeBed();
    for (const path of ["", "a\0b", "x".repeat(5_000)]) {
      await expect(bed.files.stat(SANDBOX, path)).rejects.toMatchObject({ code: "INVALID_PATH" });
      await expect(bed.files.write(SANDBOX, path, Buffer.from(""))).rejects.toMatchObject({
        code: "INVALID_PATH",
      });
      await expect(bed.files.move(SANDBOX, "a", path)).rejects.toMatchObject({ code: "INVALID_PATH" });
    }
    await expect(bed.files.write(SANDBOX, "a", Buffer.from(""), { mode: 0o77777 })).rejects.toMatchObject({
      code: "VALIDATION_ERROR",
    });
  });

  it("keep their old content when the source of the new one fails", async () => {
    await using bed = await fakeBed();
    await bed.files.write(SANDBOX, "kept", Buffer.from("old"));
    const failing = async function* () {
      yield Buffer.from("new");
      throw new Error("the upload broke off");
    };
    await expect(bed.files.write(SANDBOX, "kept", failing())).rejects.toThrow("the upload broke off");
    expect((await everything(bed.files.read(SANDBOX, "kept"))).toString()).toBe("old");
  });

  it("are read no further when the reader leaves or the signal is aborted", async () => {
    await using bed = await fakeBed();
    await bed.files.write(SANDBOX, "big", Buffer.alloc(2_000_000, 1));
    for await (const chunk of bed.files.read(SANDBOX, "big")) {
      expect(chunk.length).toBeGreaterThan(0);
      break;
    }
    const aborting = new AbortController();
    const reading = bed.files.read(SANDBOX, "big", aborting.signal);
    await reading.next();
    aborting.abort();
    await expect(everything(reading)).rejects.toMatchObject({ name: "AbortError" });
    expect((await bed.files.stat(SANDBOX, "big")).size).toBe(2_000_000);
  });

  it("travel as tar archives, whole trees at a time", async () => {
    await using bed = await fakeBed();
    const long = `deep/${"n".repeat(120)}/file`;
    await bed.files.write(SANDBOX, `from/${long}`, Buffer.from("content"), { mode: 0o755 });
    await bed.driver.files(SANDBOX).symlink("/work", "from/link", "deep");
    await bed.files.tarIn(SANDBOX, "to", bed.files.tarOut(SANDBOX, "from"));
    const shape = async (path: string) =>
      (await bed.files.list(SANDBOX, path, { recursive: true })).map(
        ({ path: name, type, mode, target }) => ({
          name,
          type,
          mode: type === "symlink" ? 0 : mode,
          target,
        }),
      );
    expect(await shape("to")).toEqual(await shape("from"));
    expect((await everything(bed.files.read(SANDBOX, `to/${long}`))).toString()).toBe("content");
    const rubbish = bed.files.tarIn(SANDBOX, "to", inParts(Buffer.alloc(1024, 7)));
    await expect(rubbish).rejects.toMatchObject({ code: "INVALID_PATH" });
  });

  it("tell their changes from when the watch is ready", async () => {
    await using bed = await fakeBed();
    await bed.files.mkdir(SANDBOX, "seen");
    const stop = new AbortController();
    let isReady = false;
    const events: string[] = [];
    const watching = (async () => {
      const onReady = () => {
        isReady = true;
      };
      for await (const { type, path } of bed.files.watch(SANDBOX, "seen", stop.signal, onReady)) {
        events.push(`${type} ${path}`);
      }
    })();
    await until("the watch is ready", () => isReady);
    await bed.files.write(SANDBOX, "seen/a", Buffer.from("1"));
    await bed.files.write(SANDBOX, "seen/a", Buffer.from("2"));
    await bed.files.write(SANDBOX, "unseen", Buffer.from("2"));
    await bed.files.remove(SANDBOX, "seen/a");
    await until("all events came", () => events.length >= 3);
    stop.abort();
    await expect(watching).rejects.toMatchObject({ name: "AbortError" });
    expect(events).toEqual(["created a", "modified a", "removed a"]);
  });

  it("that change leave evidence with paths and sizes, not contents", async () => {
    await using bed = await fakeBed();
    await bed.files.write(SANDBOX, "note", inParts(Buffer.from("sec"), Buffer.from("ret")));
    await bed.files.move(SANDBOX, "note", "memo");
    await bed.files.remove(SANDBOX, "memo");
    expect(bed.told).toEqual([
      { event: "files.write", detail: { path: "note", bytes: 6 } },
      { event: "files.move", detail: { from: "note", to: "memo" } },
      { event: "files.remove", detail: { path: "memo" } },
    ]);
  });

  it("come whole though the connection breaks meanwhile", async () => {
    await using bed = await fakeBed();
    const content = Buffer.alloc(3_000_000, "abcdefg");
    await bed.files.write(SANDBOX, "big", content);
    const parts: Uint8Array[] = [];
    for await (const chunk of bed.files.read(SANDBOX, "big")) {
      parts.push(chunk);
      if (parts.length === 10) bed.driver.dropConnections(SANDBOX);
    }
    expect(Buffer.concat(parts).equals(content)).toBe(true);
  });
});
