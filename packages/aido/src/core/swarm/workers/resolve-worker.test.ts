import { expect, test } from "vitest";
import { resolveWorker } from "./resolve-worker.ts";

const NAMES = ["aimi-swarm-login", "aimi-swarm-login-form", "aimi-swarm-cart", "aimi-other"];

test.each([
  ["aimi-swarm-login", "aimi-swarm-login"],
  ["login", "aimi-swarm-login"],
  ["login-", "aimi-swarm-login-form"],
  ["aimi-swarm-c", "aimi-swarm-cart"],
  ["c", "aimi-swarm-cart"],
  ["aimi-o", "aimi-other"],
])("%s means %s", (reference, name) => {
  expect(resolveWorker(reference, [...NAMES, ...NAMES])).toBe(name);
});

test("a beginning of several names is refused with these", () => {
  expect(() => resolveWorker("lo", NAMES)).toThrow(
    expect.objectContaining({
      code: "CONTAINER_AMBIGUOUS",
      hint: "Write more of the name: login, login-form.",
    }),
  );
});

test.each(["x", "", "ogin"])("%j, which is no worker's, is refused with those there are", (reference) => {
  expect(() => resolveWorker(reference, NAMES)).toThrow(
    expect.objectContaining({
      code: "CONTAINER_NOT_FOUND",
      hint: "These are: aimi-other, cart, login, login-form.",
    }),
  );
});
