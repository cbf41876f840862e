import { describe, expect, test } from "vitest";
import { adapterExecId, workerName } from "./worker-name.ts";

describe("S1-66 a worker is called after its task file", () => {
  test.each([
    [".aimi/tasks/2026-02-16-login-tasks.json", "aimi-swarm-login"],
    [".aimi/tasks/2026-02-16-Add_OAuth 2-tasks.json", "aimi-swarm-add-oauth-2"],
    ["login-tasks.json", "aimi-swarm-login"],
    [".aimi/tasks/2026-02-16-2026-02-17-x-tasks.json", "aimi-swarm-2026-02-17-x"],
    [".aimi/tasks/login.json", "aimi-swarm-login"],
    [".aimi/tasks/--a..b--tasks.json", "aimi-swarm-a-b"],
  ])("%s", (path, name) => expect(workerName(path)).toBe(name));

  test("and long names that begin alike stay apart", () => {
    const [one, two] = ["a", "b"].map((end) => workerName(`${"long-".repeat(20)}${end}-tasks.json`));
    expect(one).not.toBe(two);
    for (const name of [one, two]) expect(name).toMatch(/^aimi-swarm-[a-z0-9-]{1,48}$/);
  });

  test("a file without a name is refused", () => {
    expect(() => workerName(".aimi/tasks/2026-02-16-…-tasks.json")).toThrow("has no name for a worker");
  });
});

test("an adapter's exec id is the same for the same worker of the same swarm only", () => {
  const id = adapterExecId("a", "aimi-swarm-x");
  expect(id).toMatch(/^adapter-[0-9a-f]{24}$/);
  expect(adapterExecId("a", "aimi-swarm-x")).toBe(id);
  expect(adapterExecId("b", "aimi-swarm-x")).not.toBe(id);
  expect(adapterExecId("a", "aimi-swarm-y")).not.toBe(id);
});
