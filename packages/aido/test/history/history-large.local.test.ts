import { describe, expect, test } from "vitest";
import { makeHistoryBed } from "./history-bed.ts";

const under = { driver: "local", image: "host" } as const;

describe("a large workspace", () => {
  test("100,000 files are recorded, changed, listed and put back", async () => {
    await using bed = await makeHistoryBed(under);
    const fill = `
      for d in $(seq 100); do mkdir -p t/$d; for f in $(seq 1000); do echo $d.$f > t/$d/$f; done; done`;
    const one = await bed.sh(fill);
    const [entry] = await bed.aido.history.list(bed.id);
    expect(entry?.files).toHaveLength(100_000);
    await bed.sh("rm -r t/7 t/8; mv t/9 t/nine; echo changed > t/1/1");
    const [changed] = await bed.aido.history.list(bed.id);
    expect(changed?.files).toHaveLength(4_001);
    const diff = await bed.aido.history.diff(bed.id, one.id, changed?.execId ?? "");
    expect(Object.keys(diff)).toHaveLength(4_001);
    expect(diff["t/1/1"]).toContain("-1.1\n+changed\n");
    await bed.aido.history.rollback(bed.id, one.id);
    expect((await bed.sh("find t -type f | wc -l; cat t/9/5 t/7/1000 t/1/1; ls -d t/nine || true")).out).toBe(
      "100000\n9.5\n7.1000\n1.1\n",
    );
    expect(await bed.aido.history.tree(bed.id, "unknown")).toHaveLength(1);
    await bed.reopen();
    const last = await bed.sh("echo one more > t/100/1000");
    expect((await bed.aido.history.list(bed.id, { limit: 1 }))[0]).toMatchObject({
      execId: last.id,
      files: ["t/100/1000"],
    });
    expect(bed.git("fsck", "--strict", "--no-dangling")).toBe("");
  }, 300_000);

  test("a difference is told up to 8 MiB, and refused beyond", async () => {
    await using bed = await makeHistoryBed(under);
    const lines = (count: number) => `yes 0123456789abcde | head -c ${count} > text`;
    const small = await bed.sh(lines(4 * 1024 * 1024));
    const large = await bed.sh(lines(12 * 1024 * 1024));
    const diff = await bed.aido.history.diff(bed.id, "unknown", small.id);
    expect(diff["text"]?.length).toBeGreaterThan(4 * 1024 * 1024);
    await expect(bed.aido.history.diff(bed.id, "unknown", large.id)).rejects.toMatchObject({
      code: "PAYLOAD_TOO_LARGE",
    });
    expect(await bed.aido.history.file(bed.id, large.id, "text")).toHaveLength(12 * 1024 * 1024);
  });

  test("a file above 64 MiB is listed but not kept, and a rollback leaves it alone", async () => {
    await using bed = await makeHistoryBed(under);
    const one = await bed.sh("head -c 70000000 /dev/zero > big; echo 1 > small");
    await bed.sh("echo 2 > small");
    expect(await bed.aido.history.tree(bed.id, one.id)).toMatchObject([
      { path: "README.md" },
      { path: "big", size: expect.any(Number) },
      { path: "small" },
    ]);
    const kept = Buffer.from(await bed.aido.history.file(bed.id, one.id, "big")).toString();
    expect(kept).toMatch(/^This file was not kept .* it has 70000000 bytes\n$/);
    await bed.aido.history.rollback(bed.id, one.id);
    expect((await bed.sh("wc -c < big; cat small")).out).toBe("70000000\n1\n");
    // A file of the sandbox that says the same is an ordinary file.
    await bed.aido.files.write(
      bed.id,
      "/work/fake",
      Buffer.from("This file was not kept (0), it has 1 bytes\n"),
    );
    const fake = await bed.sh("true");
    await bed.sh("rm fake");
    await bed.aido.history.rollback(bed.id, fake.id);
    expect((await bed.sh("cat fake")).out).toMatch(/^This file was not kept/);
  });
});
