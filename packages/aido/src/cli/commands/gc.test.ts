import type { CollectReport } from "@aido/sdk";
import { expect, test } from "vitest";
import type { GlobalOptions } from "../context.ts";
import { runCli } from "../run-cli.ts";
import { fakeBackend } from "../testing/fake-backend.ts";
import { fakeContext } from "../testing/fake-context.ts";

const REPORT: CollectReport = { warmed: ["aaaa"], cooled: ["bbbb"], removed: ["cccc"], failed: [] };

test("S2-62 says what was moved and removed", async () => {
  expect(await cli(["gc"], REPORT)).toMatchObject({
    code: 0,
    asked: [undefined],
    stdout:
      "aaaa  warm: an image instead of a container\nbbbb  cold: in the object store\ncccc  removed\n" +
      "1 warm, 1 cold, 1 removed, 0 failed\n",
  });
});

test("S2-62 says what would be done, as JSON too", async () => {
  const { stdout, asked } = await cli(["gc", "--dry-run"], REPORT);
  expect(asked).toEqual([true]);
  expect(stdout).toContain("aaaa  would be warm");
  expect(stdout).toContain("cccc  would be removed");
  expect(JSON.parse((await cli(["--json", "gc", "--dry-run"], REPORT)).stdout)).toEqual(REPORT);
  const nothing = { warmed: [], cooled: [], removed: [], failed: [] };
  expect((await cli(["gc"], nothing)).stdout).toContain("No sandbox has been stopped for long enough");
});

test("ends with 1 when something could not be moved, and shows no control characters of it", async () => {
  const failed = [{ id: "dddd", code: "RUNTIME_UNAVAILABLE" as const, message: "no\u001b[31m engine" }];
  const { code, stdout } = await cli(["gc"], { ...REPORT, failed });
  expect(code).toBe(1);
  expect(stdout).toContain("dddd  failed: no");
  expect(stdout).not.toContain("\u001b");
});

async function cli(argv: readonly string[], report: CollectReport) {
  const asked: (boolean | undefined)[] = [];
  const gc = {
    collect: async (options: { dryRun?: boolean | undefined } = {}) => {
      asked.push(options.dryRun);
      return report;
    },
  };
  const base = fakeContext({ backend: fakeBackend({ gc }) });
  const makeContext = (globals: GlobalOptions) => Promise.resolve({ ...base, globals });
  const code = await runCli(argv, { version: "1.2.3", makeContext });
  return { code, asked, stdout: base.stdout.text };
}
