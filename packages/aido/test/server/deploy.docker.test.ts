import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { docker } from "../backends/docker-cli.ts";
import { freePort } from "../backends/server-process.ts";
import { until } from "./server-bed.ts";

const run = promisify(execFile);
const ROOT = new URL("../../../../", import.meta.url).pathname;
const IMAGE = `aido-test:deploy-${process.pid}`;
const USER = 10_001;

interface Service {
  read_only: boolean;
  cap_drop: string[];
  security_opt: string[];
  tmpfs: string[];
  volumes: string[];
}

let directory = "";

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "aido-deploy-"));
  await buildImage(join(directory, "context"));
});

afterAll(async () => {
  await docker(["rmi", IMAGE]).catch(() => undefined);
  rmSync(directory, { recursive: true, force: true });
});

test("S3-62 the server runs as a container, as its compose file says: no root, no capability, read-only", async () => {
  const service: Service = parse(readFileSync(join(ROOT, "deploy/compose.yaml"), "utf8")).services.aido;
  expect(service).toMatchObject({ read_only: true, cap_drop: ["ALL"] });
  expect(service.volumes).toEqual([
    "/var/run/docker.sock:/var/run/docker.sock",
    "/var/lib/aido:/var/lib/aido",
  ]);
  const data = join(directory, "data");
  mkdirSync(data, { mode: 0o700 });
  await run("chown", [`${USER}:${USER}`, data]);
  const socket = "/var/run/docker.sock";
  const { stdout: group } = await run("stat", ["-c", "%g", socket]);
  const options = [
    "--read-only",
    ...service.cap_drop.flatMap((name) => ["--cap-drop", name]),
    ...service.security_opt.flatMap((option) => ["--security-opt", option]),
    ...service.tmpfs.flatMap((path) => ["--tmpfs", path]),
    ...["--group-add", group.trim(), "-v", `${socket}:${socket}`, "-v", `${data}:${data}`],
    ...["-e", `AIDO_DATA_DIR=${data}`],
  ];
  const key = await docker(["run", "--rm", ...options, IMAGE, "key", "create", "me"]);
  const port = await freePort();
  const name = `aido-deploy-${process.pid}`;
  const start = () =>
    docker(["run", "-d", "--name", name, "-p", `127.0.0.1:${port}:3000`, ...options, IMAGE]);
  await start();
  const ask = async (method: string, path: string, body?: object) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      // The engine takes connections before there is anybody to answer them.
      signal: AbortSignal.timeout(method === "GET" ? 2_000 : 60_000),
    });
    return (await response.json()) as Record<string, string>;
  };
  const ready = () =>
    until("it is ready", async () =>
      ask("GET", "/ready").then(
        ({ status }) => status === "ok",
        () => false,
      ),
    );
  try {
    await ready();
    expect(await docker(["exec", name, "id", "-u"])).toBe(String(USER));
    const { containerId } = await ask("POST", "/api/sandbox", { image: "aido-test:busybox" });
    const command = ["sh", "-c", "echo it works; id -u"];
    const result = await ask("POST", "/api/sandbox/exec", { containerId, command });
    expect(result).toMatchObject({ status: "success", stdout: expect.stringMatching(/^it works\n[1-9]/) });
    // An update makes the server's container anew, with another host name: what it had made is still its own.
    await docker(["rm", "-f", "-v", name]);
    await start();
    await ready();
    expect(await ask("GET", `/api/sandbox/${containerId}`)).toMatchObject({ status: "running" });
    const again = { containerId, command: ["sh", "-c", "echo still here"] };
    expect(await ask("POST", "/api/sandbox/exec", again)).toMatchObject({ stdout: "still here\n" });
    expect(await ask("DELETE", `/api/sandbox/${containerId}`)).toEqual({ status: "deleted", containerId });
  } finally {
    await docker(["rm", "-f", "-v", name]);
  }
});

test("S3-62 a data directory that its user cannot write is told with what to do", async () => {
  const data = join(directory, "closed");
  mkdirSync(data, { mode: 0o700 });
  const options = ["-v", `${data}:${data}`, "-e", `AIDO_DATA_DIR=${data}`];
  await expect(docker(["run", "--rm", ...options, IMAGE, "key", "list"])).rejects.toThrow(
    `install -d -o ${USER} -g ${USER} -m 0700 ${data}`,
  );
});

test("S2-138 the compose file for trying snapshots has MinIO on ports 9100 and 9101 and makes its bucket", () => {
  const text = readFileSync(join(ROOT, "deploy/docker-compose.test.yml"), "utf8");
  const { minio, bucket } = parse(text).services;
  expect(minio).toMatchObject({
    image: "minio/minio",
    environment: { MINIO_ROOT_USER: "minioadmin", MINIO_ROOT_PASSWORD: "minioadmin" },
    ports: ["127.0.0.1:9100:9000", "127.0.0.1:9101:9001"],
  });
  expect(bucket).toMatchObject({
    image: "minio/mc",
    depends_on: { minio: { condition: "service_healthy" } },
  });
  expect(bucket.command).toMatch(/mc mb --ignore-existing local\/snapshots"?$/);
  expect(readFileSync(join(ROOT, "docs/guides/snapshots.md"), "utf8")).toContain(
    "docker compose -f deploy/docker-compose.test.yml up -d",
  );
});

/** The last stage of deploy/Dockerfile with what is built here, on a base that needs no registry. */
async function buildImage(context: string): Promise<void> {
  const { stdout } = await run("npm", ["ls", "--omit=dev", "--all", "--parseable"], { cwd: ROOT });
  const own = ["package.json", "packages/sdk", "packages/aido", "deploy/entrypoint.sh"];
  const libraries = stdout
    .split("\n")
    .filter((path) => path.includes("/node_modules/"))
    .map((path) => path.slice(ROOT.length));
  for (const path of [...own, ...libraries.filter((path) => !/^node_modules\/(aido|@aido)/.test(path))]) {
    cpSync(join(ROOT, path), join(context, path), {
      recursive: true,
      verbatimSymlinks: true,
      filter: (source) => !/\/packages\/[^/]+\/(src|test)(\/|$)/.test(source),
    });
  }
  cpSync(process.execPath, join(context, "node"));
  const links = ["node_modules/aido", "node_modules/@aido/sdk"];
  mkdirSync(join(context, "node_modules/@aido"), { recursive: true });
  for (const path of links) cpSync(join(ROOT, path), join(context, path), { verbatimSymlinks: true });
  const last =
    readFileSync(join(ROOT, "deploy/Dockerfile"), "utf8")
      .split(/^FROM .*$/m)
      .at(-1) ?? "";
  const stage = last
    .replace(/apt-get update[\s\S]*?lists\/\* \\\n && /, "")
    .replaceAll("COPY --from=build /src/", "COPY ");
  expect(stage).not.toContain("apt-get");
  const dockerfile = `FROM aido-test:node\nCOPY node /usr/local/bin/node\n${stage}`;
  writeFileSync(join(context, "Dockerfile"), dockerfile);
  await docker(["build", "-q", "-t", IMAGE, context]);
}
