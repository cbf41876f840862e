import { createHash, randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { ThreadedSha256 } from "./threaded-sha256.ts";

const MIB = 1024 * 1024;

test.each([0, 1, MIB - 1, MIB, 4 * MIB - 1, 4 * MIB, 4 * MIB + 1, 21 * MIB + 5])(
  "%d bytes in chunks of any size have the hash that Node gives them",
  async (size) => {
    const data = randomBytes(size);
    await using hash = new ThreadedSha256();
    const chunk = Buffer.alloc(3 * MIB);
    for (let at = 0, bytes = 1; at < size; at += bytes, bytes = Math.min(bytes * 7, chunk.length)) {
      // In memory that is used again at once, as readers of large objects do.
      const copied = data.copy(chunk, 0, at, Math.min(at + bytes, size));
      await hash.update(chunk.subarray(0, copied));
    }
    expect(await hash.digest()).toBe(createHash("sha256").update(data).digest("hex"));
  },
);

test("one that is given up in the middle leaves no thread at work", async () => {
  const before = process.getActiveResourcesInfo().filter((name) => name === "MessagePort").length;
  {
    await using hash = new ThreadedSha256();
    await hash.update(Buffer.alloc(9 * MIB));
    expect(process.getActiveResourcesInfo().filter((name) => name === "MessagePort").length).toBeGreaterThan(
      before,
    );
  }
  expect(process.getActiveResourcesInfo().filter((name) => name === "MessagePort").length).toBe(before);
});
