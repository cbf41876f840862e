import { readFile, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { SnapshotInfo } from "@aido/sdk";
import { afterAll, beforeAll, expect, test } from "vitest";
import { S3Server } from "../backends/s3-server.ts";
import { AidoServer } from "../e2e/aido-server.ts";
import { Project } from "../e2e/project.ts";

let s3: S3Server;
let settings: Readonly<Record<string, string>>;
beforeAll(async () => {
  s3 = await S3Server.start();
  settings = { ...s3.env, SANDBOX_SNAPSHOT_DESTINATION_PREFIX: "s3://snapshots/operator" };
}, 120_000);
afterAll(async () => {
  await s3[Symbol.asyncDispose]();
});

const write = (text: string) => [
  "exec",
  "box",
  "--",
  "sh",
  "-c",
  `echo ${text} > file; mkdir -p d; echo ${text} > d/e`,
];

async function takesAndRestores(project: Project, env: Readonly<Record<string, string>>): Promise<void> {
  await project.create("--name", "box");
  await project.ok(write("first"));
  const look = ["exec", "box", "--", "sh", "-c", "cat file d/e; ls -AR"];
  const before = (await project.ok(look)).stdout;
  expect(before).toMatch(/^first\nfirst\n/);
  const taken = await project.json<SnapshotInfo>(["snapshot", "box"], { env });
  expect(taken.url).toMatch(/^s3:\/\/snapshots\/operator\/\w+\/snapshot\.tar\.(gz|zst)$/);
  await project.ok(write("second"));
  await project.ok(["exec", "box", "--", "touch", "later"]);
  await project.ok(["snapshot", "box", "--from", taken.url, "--sha256", taken.sha256], { env });
  expect((await project.ok(look)).stdout).toBe(before);
}

test("S2-17 S2-136 aido snapshot keeps files in a real S3 server and puts them back", async () => {
  await using project = await Project.make("local");
  await takesAndRestores(project, settings);
});

test("S2-17 a snapshot of a sandbox of a server is taken by the server, with the server's own credentials", async () => {
  await using server = await AidoServer.start("local", settings);
  await using project = await Project.on(server.url);
  await takesAndRestores(project, {});
});

test("a damaged snapshot is refused on the command line, and the sandbox keeps its files", async () => {
  await using project = await Project.make("local");
  const env = { AIDO_SNAPSHOT_PREFIX: pathToFileURL(join(project.directory, "objects")).href };
  await project.create("--name", "box");
  await project.ok(write("first"));
  const { url } = await project.json<SnapshotInfo>(["snapshot", "box"], { env });
  const object = fileURLToPath(url);
  await truncate(object, (await stat(object)).size - 20);
  const refused = await project.aido(["snapshot", "box", "--from", url], { env });
  expect(refused.code).toBe(5);
  expect(refused.stderr).toContain("nothing was replaced");
  expect((await project.ok(["exec", "box", "--", "cat", "file"])).stdout).toBe("first\n");
  await writeFile(object, await readFile("/bin/true"));
  expect((await project.aido(["snapshot", "box", "--from", url], { env })).code).toBe(5);
});

test("a user's address that leads to a private place is refused, with what to do", async () => {
  await using project = await Project.make("local");
  await project.create("--name", "box");
  const refused = await project.aido(["snapshot", "box", "--to", "https://127.0.0.1:1/x"]);
  expect(refused.code).toBe(3);
  expect(refused.stderr).toContain("AIDO_SNAPSHOT_ALLOW");
});
