import { expect, test } from "vitest";
import { loadConfig } from "./load-config.ts";

const load = ({ env }: { env: Record<string, string> }) =>
  loadConfig({ env: { XDG_CONFIG_HOME: "/nowhere", ...env }, cwd: "/" });

test("has the variables of former servers, weaker than its own names", () => {
  const former = {
    PORT: "8080",
    DEFAULT_TIMEOUT: "60000",
    DEFAULT_MEMORY_LIMIT: "256m",
    DEFAULT_CPU_LIMIT: "0.25",
    CONTAINER_CLEANUP_INTERVAL: "5000",
    MAX_CONTAINERS_PER_USER: "3",
  };
  const { config } = load({ env: former });
  expect(config.serve).toMatchObject({ port: 8080, timeoutMs: 60_000, maxSandboxes: 3 });
  expect(config.limits).toMatchObject({ memoryBytes: 256 * 1024 ** 2, cpus: 0.25 });
  expect(config.reaper.intervalMs).toBe(5_000);
  const own = { AIDO_SERVE_TIMEOUT: "5m", AIDO_REAPER_INTERVAL: "1m", AIDO_LIMITS_CPUS: "2" };
  const stronger = load({ env: { ...former, ...own } }).config;
  expect(stronger.serve.timeoutMs).toBe(300_000);
  expect(stronger.reaper.intervalMs).toBe(60_000);
  expect(stronger.limits.cpus).toBe(2);
  expect(() => load({ env: { DEFAULT_TIMEOUT: "soon" } })).toThrow("DEFAULT_TIMEOUT");
});
