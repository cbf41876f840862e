import { createHash, randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { ObjectStore } from "../../src/core/object-store/object-store.ts";

export interface ObjectStoreUnderTest extends AsyncDisposable {
  readonly store: ObjectStore;
}

/** Larger than what any adapter sends or reads at once. */
const LARGE = 20 * 1024 * 1024 + 13;

/** What every object store must do. Each adapter's test file calls it with a way to open an empty one. */
export function objectStoreContract(name: string, open: () => Promise<ObjectStoreUnderTest>): void {
  describe(`${name} object store`, () => {
    test("what was put comes back with its size and hash", async () => {
      await using opened = await open();
      const { store } = opened;
      const content = randomBytes(300_000);
      const stored = await store.put("a/b.bin", inChunks(content, 70_000));
      expect(stored).toEqual({ bytes: content.length, sha256: sha256(content) });
      expect(await store.head("a/b.bin")).toEqual({ bytes: content.length });
      expect(await collect(await store.get("a/b.bin"))).toEqual(content);
    });

    test("an object may be empty", async () => {
      await using opened = await open();
      await opened.store.put("empty", inChunks(Buffer.alloc(0), 1));
      expect(await opened.store.head("empty")).toEqual({ bytes: 0 });
      expect(await collect(await opened.store.get("empty"))).toEqual(Buffer.alloc(0));
    });

    test("an object of unknown length and many parts comes back exactly", async () => {
      await using opened = await open();
      const content = randomBytes(LARGE);
      const stored = await opened.store.put("large", inChunks(content, 1_000_003));
      expect(stored).toEqual({ bytes: LARGE, sha256: sha256(content) });
      expect(sha256(await collect(await opened.store.get("large")))).toBe(sha256(content));
    });

    test("names with spaces, signs and letters of any language are kept apart", async () => {
      await using opened = await open();
      const names = ["a b+c", "a%20b+c", "ünï/çödé 💥", "x=1&y=2?z#f", "'quoted' (1)*!~"];
      for (const key of names) await opened.store.put(key, inChunks(Buffer.from(key), 3));
      for (const key of names) {
        expect((await collect(await opened.store.get(key))).toString()).toBe(key);
      }
    });

    test("putting again replaces the whole object", async () => {
      await using opened = await open();
      await opened.store.put("key", inChunks(Buffer.from("the longer first content"), 5));
      await opened.store.put("key", inChunks(Buffer.from("second"), 5));
      expect((await collect(await opened.store.get("key"))).toString()).toBe("second");
    });

    test.each([10, LARGE])("a body that breaks off after %d bytes changes nothing", async (bytes) => {
      await using opened = await open();
      await opened.store.put("key", inChunks(Buffer.from("before"), 6));
      const broken = async function* () {
        yield* inChunks(randomBytes(bytes), 1024 * 1024);
        throw new Error("the disk is gone");
      };
      await expect(opened.store.put("key", broken())).rejects.toThrow("the disk is gone");
      await expect(opened.store.put("other", broken())).rejects.toThrow("the disk is gone");
      expect((await collect(await opened.store.get("key"))).toString()).toBe("before");
      expect(await opened.store.head("other")).toBeUndefined();
    });

    test("a put that is aborted midway changes nothing", async () => {
      await using opened = await open();
      const controller = new AbortController();
      const body = async function* () {
        yield randomBytes(LARGE);
        controller.abort();
        yield randomBytes(100);
      };
      await expect(opened.store.put("key", body(), { signal: controller.signal })).rejects.toThrow();
      expect(await opened.store.head("key")).toBeUndefined();
    });

    test("what is not there is told before the first byte", async () => {
      await using opened = await open();
      await expect(opened.store.get("nothing/here")).rejects.toMatchObject({ code: "OBJECT_NOT_FOUND" });
      expect(await opened.store.head("nothing/here")).toBeUndefined();
    });

    test("removing is idempotent and takes one object only", async () => {
      await using opened = await open();
      await opened.store.put("a/1", inChunks(Buffer.from("1"), 1));
      await opened.store.put("a/2", inChunks(Buffer.from("2"), 1));
      await opened.store.remove("a/1");
      await opened.store.remove("a/1");
      expect(await opened.store.head("a/1")).toBeUndefined();
      expect(await opened.store.head("a/2")).toEqual({ bytes: 1 });
    });

    test.each(["", "/a", "a/", "a//b", "../a", "a/../b", "a/./b", "a\\b", "a\nb", "a\0b", "x".repeat(1025)])(
      "%j cannot be a name",
      async (key) => {
        await using opened = await open();
        const { store } = opened;
        const refused = { code: "INVALID_PATH" };
        await expect(store.put(key, inChunks(Buffer.from("x"), 1))).rejects.toMatchObject(refused);
        await expect(store.get(key)).rejects.toMatchObject(refused);
        await expect(store.head(key)).rejects.toMatchObject(refused);
        await expect(store.remove(key)).rejects.toMatchObject(refused);
      },
    );

    test("a reader that stops early leaves nothing open and nothing broken", async () => {
      await using opened = await open();
      const content = randomBytes(LARGE);
      await opened.store.put("large", inChunks(content, LARGE));
      for await (const chunk of await opened.store.get("large")) {
        expect(chunk.byteLength).toBeGreaterThan(0);
        break;
      }
      expect(sha256(await collect(await opened.store.get("large")))).toBe(sha256(content));
    });
  });
}

export async function* inChunks(content: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < content.length; at += size) yield content.subarray(at, at + size);
}

export async function collect(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

export function sha256(content: Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}
