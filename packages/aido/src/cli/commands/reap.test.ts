import type { ReapReport } from "@aido/sdk";
import { expect, test } from "vitest";
import type { GlobalOptions } from "../context.ts";
import { runCli } from "../run-cli.ts";
import { fakeBackend } from "../testing/fake-backend.ts";
import { fakeContext } from "../testing/fake-context.ts";

const REPORT: ReapReport = { idle: ["aaaa"], expired: ["bbbb"], busy: ["cccc"], failed: [] };

test("says what was stopped, destroyed and left alone", async () => {
  expect(await cli(["reap"], REPORT)).toMatchObject({
    code: 0,
    asked: [undefined],
    stdout:
      "aaaa  stopped: nobody uses it\nbbbb  destroyed: its time is over\ncccc  runs on: it is at work\n",
  });
});

test("says what would be done, as JSON too", async () => {
  const { stdout, asked } = await cli(["reap", "--dry-run"], REPORT);
  expect(asked).toEqual([true]);
  expect(stdout).toContain("aaaa  would be stopped");
  expect(JSON.parse((await cli(["--json", "reap", "-n"], REPORT)).stdout)).toEqual(REPORT);
  const nothing = { idle: [], expired: [], busy: [], failed: [] };
  expect((await cli(["reap"], nothing)).stdout).toContain("Nothing is idle");
});

test("ends with 1 when something could not be ended, and shows no control characters of it", async () => {
  const failed = [{ id: "dddd", code: "RUNTIME_UNAVAILABLE" as const, message: "no\u001b[31m engine" }];
  const { code, stdout } = await cli(["reap"], { ...REPORT, failed });
  expect(code).toBe(1);
  expect(stdout).toContain("dddd  failed: no");
  expect(stdout).not.toContain("\u001b");
});

async function cli(argv: readonly string[], report: ReapReport) {
  const asked: (boolean | undefined)[] = [];
  const reaper = {
    reap: async (options: { dryRun?: boolean | undefined } = {}) => {
      asked.push(options.dryRun);
      return report;
    },
  };
  const base = fakeContext({ backend: fakeBackend({ reaper }) });
  const makeContext = (globals: GlobalOptions) => Promise.resolve({ ...base, globals });
  const code = await runCli(argv, { version: "1.2.3", makeContext });
  return { code, asked, stdout: base.stdout.text };
}
