import { describe, expect, test } from "vitest";
import { lifetimesOf } from "./lifetimes.ts";

const HOUR = 3_600_000;
const sidecar = { idleTimeoutMs: HOUR, maxIdleTimeoutMs: 2 * HOUR, ttlMs: 24 * HOUR, maxTtlMs: 48 * HOUR };

describe("S2-112 S2-113 S2-114 S2-115 a sidecar sandbox", () => {
  test("gets the operator's defaults when it asks for nothing, or for 0", () => {
    const defaults = { ttlMs: 24 * HOUR, idleTimeoutMs: HOUR };
    expect(lifetimesOf("sidecar", {}, { sidecar })).toEqual(defaults);
    expect(lifetimesOf("sidecar", { ttlMs: 0, idleTimeoutMs: 0 }, { sidecar })).toEqual(defaults);
    expect(lifetimesOf("sidecar", {}, {})).toEqual({ ttlMs: 24 * HOUR, idleTimeoutMs: HOUR / 2 });
  });

  test("gets what it asks for up to the operator's most", () => {
    const less = { ttlMs: HOUR, idleTimeoutMs: 1000 };
    expect(lifetimesOf("sidecar", less, { sidecar })).toEqual(less);
    const more = { ttlMs: 99 * HOUR, idleTimeoutMs: 99 * HOUR };
    expect(lifetimesOf("sidecar", more, { sidecar })).toEqual({ ttlMs: 48 * HOUR, idleTimeoutMs: 2 * HOUR });
    const unbound = { ...sidecar, maxTtlMs: 0, maxIdleTimeoutMs: 0 };
    expect(lifetimesOf("sidecar", more, { sidecar: unbound })).toEqual(more);
  });

  test("is bound by the most though the default is no end", () => {
    const endless = { ...sidecar, ttlMs: 0, idleTimeoutMs: 0 };
    expect(lifetimesOf("sidecar", {}, { sidecar: endless })).toEqual({
      ttlMs: 48 * HOUR,
      idleTimeoutMs: 2 * HOUR,
    });
  });
});

test("any other sandbox lives as it asks, and is never idle unless somebody says so", () => {
  expect(lifetimesOf("aido", {}, { sidecar })).toEqual({ ttlMs: 0, idleTimeoutMs: 0 });
  const asked = { ttlMs: 99 * HOUR, idleTimeoutMs: 99 * HOUR };
  expect(lifetimesOf("server", asked, { sidecar })).toEqual(asked);
  const defaults = { ttlMs: HOUR, idleTimeoutMs: 1000 };
  expect(lifetimesOf("aido", {}, { sidecar, ...defaults })).toEqual(defaults);
  expect(lifetimesOf("aido", { ttlMs: 0, idleTimeoutMs: 0 }, defaults)).toEqual({
    ttlMs: 0,
    idleTimeoutMs: 0,
  });
});
