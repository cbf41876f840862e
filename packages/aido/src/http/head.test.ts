import { describe, expect, test } from "vitest";
import { ApiBed } from "../../test/server/api-bed.ts";

describe("a request for the headers alone", () => {
  test("ends what would have made the body: streams, watches and files that nobody reads", async () => {
    await using bed = await ApiBed.open();
    const id = await bed.sandbox();
    const base = `/api/sandbox/${id}`;
    await bed.call("PUT", `${base}/files?path=big`, { raw: Buffer.alloc(4 * 1024 * 1024) });
    await bed.exec(id, ["stubborn"], { background: true, id: "long" });
    const paths = [
      "/exec/long/stream",
      "/files/watch?path=.",
      "/files?path=big",
      "/files/tar?path=.",
      "/stats?stream=true",
    ];
    for (const path of paths) {
      const reply = await bed.call("HEAD", base + path);
      expect([path, reply.status, reply.text]).toEqual([path, 200, ""]);
      await expect.poll(() => bed.aido.activity.count()).toBe(0);
    }
  });
});
