import { expect, test } from "vitest";
import type { ApiKeyRecord, ApiKeys } from "../../core/access/api-keys.ts";
import type { GlobalOptions } from "../context.ts";
import { runCli } from "../run-cli.ts";
import { fakeContext } from "../testing/fake-context.ts";

test("a key is made with limits of its own, stored with it and shown", async () => {
  const records: ApiKeyRecord[] = [];
  const limits = ["--max-sandboxes", "2", "--max-cpus", "1.5", "--max-memory", "1g", "--rate-limit", "0"];
  expect((await cli(records, "key", "create", "guest", ...limits)).code).toBe(0);
  expect((await cli(records, "key", "create", "plain")).code).toBe(0);
  expect(records.map((record) => record.limits)).toEqual([
    { maxSandboxes: 2, maxCpus: 1.5, maxMemoryBytes: 1024 ** 3, rateLimit: 0 },
    {},
  ]);
  const { stdout } = await cli(records, "key", "list");
  expect(stdout).toContain("2 sandboxes, 1.5 cpus, 1 GiB memory, any requests/min");
  const json = JSON.parse((await cli(records, "--json", "key", "list")).stdout);
  expect(json[0].limits).toMatchObject({ maxCpus: 1.5 });
});

test("a limit that is none is refused, and no key is made", async () => {
  const records: ApiKeyRecord[] = [];
  for (const option of ["--max-sandboxes", "--max-cpus", "--max-memory", "--rate-limit"]) {
    for (const value of ["-1", "many", "1.5.2"]) {
      const { code } = await cli(records, "key", "create", "guest", `${option}=${value}`);
      expect([option, value, code]).toEqual([option, value, 2]);
    }
  }
  expect(records).toEqual([]);
});

async function cli(records: ApiKeyRecord[], ...argv: string[]) {
  const context = fakeContext();
  const withKeys: typeof context.withKeys = (work) => work(keysIn(records));
  const makeContext = (globals: GlobalOptions) => Promise.resolve({ ...context, globals, withKeys });
  const code = await runCli(argv, { version: "1.2.3", makeContext });
  return { code, stdout: context.stdout.text };
}

function keysIn(records: ApiKeyRecord[]): ApiKeys {
  return {
    get: async (id) => records.find((record) => record.id === id),
    list: async () => records,
    hadAny: async () => records.length > 0,
    hasAny: async () => records.some(({ revokedAt }) => revokedAt === undefined),
    insert: async (record) => void records.push(record),
    revoke: async () => false,
  };
}
