import type { RestoreSnapshot, TakeSnapshot } from "@aido/sdk";
import { expect, test } from "vitest";
import { fakeBackend } from "../testing/fake-backend.ts";
import { fakeContext } from "../testing/fake-context.ts";
import { snapshot } from "./snapshot.ts";

const TAKEN = {
  url: "s3://bucket/web\u001b[31m.tar.gz",
  sha256: "ab".repeat(32),
  bytes: 2048,
  createdAt: new Date("2026-01-01T00:00:00Z"),
};

function bed() {
  const asked: unknown[] = [];
  const backend = fakeBackend({
    snapshots: {
      take: async (sandbox: string, { signal: _, onProgress: __, ...rest }: TakeSnapshot = {}) => {
        asked.push([sandbox, rest]);
        return TAKEN;
      },
      restore: async (sandbox: string, url: string, { sha256 }: RestoreSnapshot = {}) => {
        asked.push([sandbox, url, sha256]);
      },
    },
  });
  return { asked, context: fakeContext({ backend }) };
}

test("a snapshot is taken and its place and hash are printed, harmless for a terminal", async () => {
  const { asked, context } = bed();
  expect(await snapshot(context, "web", { to: "s3://bucket/web.tar.gz", state: true })).toBe(0);
  expect(asked).toEqual([["web", { destination: "s3://bucket/web.tar.gz", includeState: true }]]);
  expect(context.stdout.text).toContain(TAKEN.sha256);
  expect(context.stdout.text).not.toContain("\u001b");
});

test("one is put back with --from", async () => {
  const { asked, context } = bed();
  expect(await snapshot(context, "web", { from: "s3://bucket/x", sha256: "cd".repeat(32) })).toBe(0);
  expect(asked).toEqual([["web", "s3://bucket/x", "cd".repeat(32)]]);
});

test.each([{ from: "a", to: "b" }, { from: "a", state: true }, { sha256: "x" }])(
  "options %j do not go together",
  async (options) => {
    await expect(snapshot(bed().context, "web", options)).rejects.toMatchObject({ code: "VALIDATION_ERROR" });
  },
);
