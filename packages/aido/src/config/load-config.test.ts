import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { configPage } from "./config-page.ts";
import { loadConfig } from "./load-config.ts";
import { nearestName } from "./nearest-name.ts";
import { KEYS, variableOf } from "./settings.ts";

describe("the configuration", () => {
  test("S3-26 the server listens on port 3000 of loopback unless told otherwise", () => {
    using place = configPlace();
    expect(place.load().config.serve).toMatchObject({ host: "127.0.0.1", port: 3000 });
    expect(place.load({ env: { PORT: "8080" } }).config.serve.port).toBe(8080);
  });

  test("has a default for everything", () => {
    using place = configPlace();
    const { config, settings } = place.load();
    expect(config).toMatchObject({
      driver: "auto",
      dataDir: join(place.cwd, ".aido"),
      profile: "aido",
      logLevel: "warn",
      requestTimeoutMs: 30_000,
      limits: {},
      json: false,
    });
    expect(Object.isFrozen(config)).toBe(true);
    expect(new Set(settings.map(({ source }) => source))).toEqual(new Set(["default"]));
  });

  test("takes flags before variables before files, and says where each value came from", () => {
    using place = configPlace();
    place.userFile({ driver: "local", ttl: "1h", limits: { cpus: 2, memory: "1g" }, dataDir: "/from/file" });
    const named = place.file("named.json", { ttl: "2h" });
    const { config, settings } = place.load({
      env: { AIDO_LIMITS_CPUS: "0.5", AIDO_DRIVER: "docker", DOCKER_HOST: "tcp://a:1", AIDO_DATA_DIR: "~/x" },
      configPath: named,
      flags: { driver: "auto", dataDir: undefined },
    });
    expect(config).toMatchObject({
      driver: "auto",
      ttlMs: 7_200_000,
      limits: { cpus: 0.5, memoryBytes: 1024 ** 3 },
      dockerHost: "tcp://a:1",
      dataDir: join(homedir(), "x"),
    });
    const source = (key: string) => settings.find((setting) => setting.key === key)?.source;
    expect(source("driver")).toBe("flag");
    expect(source("ttl")).toBe(named);
    expect(source("limits.cpus")).toBe("AIDO_LIMITS_CPUS");
    expect(source("limits.memory")).toMatch(/aido\/config.json$/);
    expect(source("dockerHost")).toBe("DOCKER_HOST");
  });

  test("prefers AIDO_ names to others, whose units are their own", () => {
    using place = configPlace();
    expect(place.load({ env: { REQUEST_TIMEOUT_SECS: "7" } }).config.requestTimeoutMs).toBe(7000);
    const both = { REQUEST_TIMEOUT_SECS: "7", AIDO_REQUEST_TIMEOUT: "500ms" };
    expect(place.load({ env: both }).config.requestTimeoutMs).toBe(500);
    expect(place.load({ env: { SANDBOX_DEFAULT_MAX_LIFETIME: "86400" } }).config.ttlMs).toBe(86_400_000);
    expect(place.load({ env: { AIDO_URL: "http://x:1", AIDO_DRIVER: "" } }).config.server).toBe("http://x:1");
  });

  test("S2-108 SIDECAR_SSH_PORT says where SSH is listened for; without it nothing listens", () => {
    using place = configPlace();
    expect(place.load({ env: {} }).config.serve).toMatchObject({ sshPort: undefined, sshHost: "127.0.0.1" });
    expect(place.load({ env: { SIDECAR_SSH_PORT: "22" } }).config.serve.sshPort).toBe(22);
    const both = { SIDECAR_SSH_PORT: "22", AIDO_SERVE_SSH_PORT: "2222" };
    expect(place.load({ env: both }).config.serve.sshPort).toBe(2222);
    expect(() => place.load({ env: { SIDECAR_SSH_PORT: "ssh" } })).toThrow(/SIDECAR_SSH_PORT/);
  });

  test("S2-124 S2-125 S2-126 S2-127 S2-128 S2-129 has the variables of QoS and of the operator's capacity, with their defaults", () => {
    using place = configPlace();
    const { qos, operatorCapacity } = place.load().config;
    expect(qos).toEqual({
      enabled: false,
      intervalMs: 60_000,
      dryRun: false,
      serviceId: undefined,
      blueprintId: undefined,
    });
    expect(operatorCapacity).toBeUndefined();
    const env = {
      QOS_ENABLED: "true",
      QOS_METRICS_INTERVAL_SECS: "5",
      QOS_DRY_RUN: "true",
      SERVICE_ID: "7",
      BLUEPRINT_ID: "18446744073709551615",
      OPERATOR_MAX_CAPACITY: "100",
    };
    const set = place.load({ env }).config;
    expect(set.qos).toEqual({
      enabled: true,
      intervalMs: 5000,
      dryRun: true,
      serviceId: "7",
      blueprintId: "18446744073709551615",
    });
    expect(set.operatorCapacity).toBe(100);
    const wrong = { QOS_ENABLED: "yes", QOS_METRICS_INTERVAL_SECS: "5s", OPERATOR_MAX_CAPACITY: "0" };
    expect(problemsOf(() => place.load({ env: wrong }))).toHaveLength(3);
    // Other programs have a SERVICE_ID too: what it says keeps nobody from using aido.
    expect(place.load({ env: { SERVICE_ID: "web-1" } }).config.qos.serviceId).toBe("web-1");
    expect(() => place.load({ env: { AIDO_QOS_SERVICE_ID: "web-1" } })).toThrow(/whole number/);
  });

  test("S2-105 S2-106 S2-107 S2-109 S2-110 S2-111 S2-112 S2-113 S2-114 S2-115 S2-116 has the operator's variables with their defaults", () => {
    using place = configPlace();
    const { sidecar, reaper, requestTimeoutMs, dockerHost } = place.load({ env: {} }).config;
    expect({ sidecar, reaper, requestTimeoutMs, dockerHost }).toEqual({
      sidecar: {
        image: "ghcr.io/tangle-network/sidecar:latest",
        isImageSet: false,
        publicHost: "127.0.0.1",
        httpPort: 8080,
        ownPorts: false,
        pullImage: true,
        idleTimeoutMs: 1_800_000,
        maxIdleTimeoutMs: 7_200_000,
        ttlMs: 86_400_000,
        maxTtlMs: 172_800_000,
      },
      reaper: { intervalMs: 30_000, busyCpus: 0.05, snapshot: false },
      requestTimeoutMs: 30_000,
      dockerHost: undefined,
    });
    const env = {
      SIDECAR_IMAGE: "mine:1",
      SIDECAR_PUBLIC_HOST: "example.org",
      SIDECAR_HTTP_PORT: "80",
      SIDECAR_PULL_IMAGE: "false",
      DOCKER_HOST: "tcp://a:1",
      REQUEST_TIMEOUT_SECS: "7",
      SANDBOX_DEFAULT_IDLE_TIMEOUT: "60",
      SANDBOX_MAX_IDLE_TIMEOUT: "120",
      SANDBOX_DEFAULT_MAX_LIFETIME: "600",
      SANDBOX_MAX_MAX_LIFETIME: "1200",
      SANDBOX_REAPER_INTERVAL: "5",
    };
    const set = place.load({ env }).config;
    expect(set).toMatchObject({
      sidecar: {
        image: "mine:1",
        isImageSet: true,
        publicHost: "example.org",
        httpPort: 80,
        ownPorts: false,
        pullImage: false,
        idleTimeoutMs: 60_000,
        maxIdleTimeoutMs: 120_000,
        ttlMs: 600_000,
        maxTtlMs: 1_200_000,
      },
      reaper: { intervalMs: 5000 },
      requestTimeoutMs: 7000,
      dockerHost: "tcp://a:1",
    });
    const both = { ...env, AIDO_SIDECAR_IDLE_TIMEOUT: "90s", AIDO_REAPER_INTERVAL: "1s" };
    const { config } = place.load({ env: both });
    expect([config.sidecar.idleTimeoutMs, config.reaper.intervalMs]).toEqual([90_000, 1000]);
    expect(problemsOf(() => place.load({ env: { SANDBOX_REAPER_INTERVAL: "soon" } }))).toHaveLength(1);
  });

  test("S2-117 S2-118 S2-119 S2-120 S2-121 has the collector's variables with their defaults", () => {
    using place = configPlace();
    expect(place.load({ env: {} }).config.gc).toEqual({
      intervalMs: 3_600_000,
      hotMs: 86_400_000,
      warmMs: 172_800_000,
      coldMs: 604_800_000,
      autoCommit: undefined,
    });
    const env = {
      SANDBOX_GC_INTERVAL: "60",
      SANDBOX_GC_HOT_RETENTION: "1",
      SANDBOX_GC_WARM_RETENTION: "2",
      SANDBOX_GC_COLD_RETENTION: "3",
      SANDBOX_SNAPSHOT_AUTO_COMMIT: "false",
      AIDO_GC_COLD_RETENTION: "4s",
    };
    expect(place.load({ env }).config.gc).toEqual({
      ...{ intervalMs: 60_000, hotMs: 1000, warmMs: 2000, coldMs: 4000, autoCommit: false },
    });
  });

  test("lists every problem at once, with the name that was meant", () => {
    using place = configPlace();
    place.userFile({ drivr: "local", limits: { cpu: 1, pids: "many" }, elephants: 3 });
    const load = () =>
      place.load({ env: { AIDO_DATADIR: "/x", AIDO_TTL: "soon", AIDO_TEST_REQUIRE: "docker" } });
    expect(load).toThrow(expect.objectContaining({ code: "INVALID_CONFIG" }));
    const problems = problemsOf(load);
    expect(problems).toHaveLength(6);
    expect(problems).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/there is no setting drivr; did you mean driver\?$/),
        expect.stringMatching(/there is no setting limits.cpu; did you mean limits.cpus\?$/),
        expect.stringMatching(/there is no setting elephants$/),
        expect.stringMatching(/limits.pids must be a whole number of at least 8, not "many"$/),
        expect.stringMatching(/^There is no variable AIDO_DATADIR; did you mean AIDO_DATA_DIR\?$/),
        expect.stringMatching(/^AIDO_TTL: ttl must be a duration .*, not "soon"$/),
      ]),
    );
  });

  test("names the line of a file that is not JSON, and a named file that is missing", () => {
    using place = configPlace();
    const broken = place.file("broken.json", undefined, '{\n  "driver": "local",\n  oops\n}');
    expect(problemsOf(() => place.load({ configPath: broken }))[0]).toContain("broken.json");
    expect(problemsOf(() => place.load({ configPath: "missing.json" }))[0]).toContain("ENOENT");
    const list = place.file("list.json", undefined, "[]");
    expect(problemsOf(() => place.load({ env: { AIDO_CONFIG: list } }))[0]).toContain("one JSON object");
  });

  test("hides secrets wherever they are printed, also when they are wrong", () => {
    using place = configPlace();
    const file = place.file("key", undefined, "s3cret\n");
    const { config, settings } = place.load({ env: { AIDO_API_KEY_FILE: file } });
    expect(config.apiKey?.reveal()).toBe("s3cret");
    for (const printed of [
      JSON.stringify(config),
      JSON.stringify(settings),
      inspect(config, { depth: 9 }),
      `${config.apiKey}`,
    ]) {
      expect(printed).not.toContain("s3cret");
    }
    place.userFile({ apiKey: { nested: "s3cret" } });
    expect(() => place.load()).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining("s3cret") }),
    );
  });

  test("names its variables mechanically", () => {
    expect(KEYS.map(variableOf)).toContain("AIDO_LIMITS_OPEN_FILES");
    expect(new Set(KEYS.map(variableOf)).size).toBe(KEYS.length);
  });

  test("is described by docs/reference/config.md as it is", () => {
    const page = new URL("../../../../docs/reference/config.md", import.meta.url);
    if (process.env["AIDO_WRITE_DOCS"] === "1") writeFileSync(page, configPage());
    expect(readFileSync(page, "utf8")).toBe(configPage());
  });
});

describe("the nearest name", () => {
  test("is one slip away, never something else", () => {
    expect(nearestName("drvier", ["driver", "dataDir"])).toBe("driver");
    expect(nearestName("drive", ["driver", "dataDir"])).toBe("driver");
    expect(nearestName("datadir", ["driver", "dataDir"])).toBe("dataDir");
    expect(nearestName("x", ["y", "driver"])).toBe("y");
    expect(nearestName("something", ["driver"])).toBeUndefined();
  });
});

function problemsOf(load: () => unknown): string[] {
  try {
    load();
  } catch (thrown) {
    return (thrown as { details: { problems: string[] } }).details.problems;
  }
  throw new Error("nothing was wrong");
}

function configPlace() {
  const cwd = mkdtempSync(join(tmpdir(), "aido-config-"));
  const home = join(cwd, "home");
  mkdirSync(join(home, "aido"), { recursive: true });
  return {
    cwd,
    file(name: string, content: unknown, text = JSON.stringify(content)) {
      writeFileSync(join(cwd, name), text);
      return join(cwd, name);
    },
    userFile: (content: unknown) => writeFileSync(join(home, "aido", "config.json"), JSON.stringify(content)),
    load: (sources: Partial<Parameters<typeof loadConfig>[0]> = {}) =>
      loadConfig({ cwd, ...sources, env: { XDG_CONFIG_HOME: home, ...sources.env } }),
    [Symbol.dispose]: () => rmSync(cwd, { recursive: true, force: true }),
  };
}
