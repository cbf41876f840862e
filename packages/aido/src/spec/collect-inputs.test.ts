import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { asOrdinaryUser } from "../../test/processes/as-ordinary-user.ts";
import { collectInputs } from "./collect-inputs.ts";

async function makeProject(files: readonly string[]) {
  const root = await mkdtemp(join(tmpdir(), "aido-inputs-"));
  const project = join(root, "project");
  await mkdir(project);
  const write = async (path: string, text = path) => {
    await mkdir(dirname(join(project, path)), { recursive: true });
    await writeFile(join(project, path), text);
  };
  for (const file of files) await write(file);
  return {
    root,
    project,
    link: (target: string, path: string) => symlink(target, join(project, path)),
    paths: async (...patterns: string[]) => (await collectInputs(project, patterns)).map((file) => file.path),
    async [Symbol.asyncDispose]() {
      await rm(root, { recursive: true });
    },
  };
}

async function textOf(content: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of content) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

test("S0-14 S0-35 patterns find files, each once, with their relative paths", async () => {
  await using project = await makeProject(["data/a.csv", "data/b.csv", "data/deep/c.csv", "readme.md"]);
  expect(await project.paths("data/*.csv")).toEqual(["data/a.csv", "data/b.csv"]);
  expect(await project.paths("**/*.csv", "data/a.csv")).toEqual([
    "data/a.csv",
    "data/b.csv",
    "data/deep/c.csv",
  ]);
  expect(await project.paths("{readme.md,data/?.csv}")).toEqual(["data/a.csv", "data/b.csv", "readme.md"]);
  expect(await project.paths("./readme.md")).toEqual(["readme.md"]);
});

test("S0-35 a directory stands for all it holds, but not one that a wildcard happens to match", async () => {
  await using project = await makeProject(["data/a.csv", "data/deep/c.csv", "top.txt"]);
  expect(await project.paths("data")).toEqual(["data/a.csv", "data/deep/c.csv"]);
  expect(await project.paths("data/")).toEqual(["data/a.csv", "data/deep/c.csv"]);
  expect(await project.paths("*")).toEqual(["top.txt"]);
});

test("S0-35 dot-directories and node_modules are passed over unless they are named", async () => {
  await using project = await makeProject([
    ".aido/sandboxes/x/run.json",
    ".git/config",
    "node_modules/a/index.js",
    "src/node_modules/b.js",
    "src/main.js",
    ".env",
    ".github/ci.yml",
  ]);
  expect(await project.paths("**")).toEqual(["src/main.js"]);
  expect(await project.paths("**/*.js")).toEqual(["src/main.js"]);
  expect(await project.paths(".github/ci.yml", ".env")).toEqual([".env", ".github/ci.yml"]);
});

test("S0-14 a pattern that finds nothing is named", async () => {
  await using project = await makeProject(["a.txt"]);
  await expect(project.paths("a.txt", "data/*.csv")).rejects.toMatchObject({
    code: "INPUT_NOT_FOUND",
    message: 'No file matches the input "data/*.csv"',
    details: { pattern: "data/*.csv" },
  });
});

test("a pattern whose files an earlier one found already is not missing", async () => {
  await using project = await makeProject(["a.txt"]);
  expect(await project.paths("*.txt", "a.txt")).toEqual(["a.txt"]);
});

test.each(["../outside.txt", "/etc/hostname", "a/../../outside.txt", "{..,a}/outside.txt"])(
  "S0-81 the pattern %s leads out of the project and is refused",
  async (pattern) => {
    await using project = await makeProject(["a/b.txt"]);
    await writeFile(join(project.root, "outside.txt"), "secret");
    await expect(project.paths(pattern)).rejects.toMatchObject({ code: "INVALID_PATH" });
  },
);

test("S0-81 a link that leads out of the project is refused, named or matched", async () => {
  await using project = await makeProject(["a.txt"]);
  await writeFile(join(project.root, "outside.txt"), "secret");
  await mkdir(join(project.root, "elsewhere"));
  await writeFile(join(project.root, "elsewhere", "x.txt"), "secret");
  await project.link("../outside.txt", "out.txt");
  await project.link("../elsewhere", "out-dir");
  await expect(project.paths("out.txt")).rejects.toMatchObject({ code: "INVALID_PATH" });
  await expect(project.paths("*.txt")).rejects.toMatchObject({ code: "INVALID_PATH" });
  await expect(project.paths("out-dir/x.txt")).rejects.toMatchObject({ code: "INVALID_PATH" });
});

test("S0-35 a link inside the project counts with the content it leads to", async () => {
  await using project = await makeProject(["data/real.txt"]);
  await project.link("data/real.txt", "link.txt");
  const [file] = await collectInputs(project.project, ["link.txt"]);
  expect(file?.path).toBe("link.txt");
  expect(await textOf(file?.content() ?? (async function* () {})())).toBe("data/real.txt");
});

test("links that lead in a circle end", async () => {
  await using project = await makeProject(["a/b.txt"]);
  await project.link("..", "a/up");
  await project.link("loop", "loop");
  expect(await project.paths("**/*.txt")).toEqual(["a/b.txt"]);
  await expect(project.paths("loop")).rejects.toMatchObject({ code: "INPUT_NOT_FOUND" });
});

test("S0-35 a file that a pattern matches and whose name is not UTF-8 is refused, not passed over", async () => {
  await using project = await makeProject(["data/a.csv", "b.txt"]);
  const odd = Buffer.concat([
    Buffer.from(`${project.project}/data/x`),
    Buffer.from([0xff]),
    Buffer.from(".csv"),
  ]);
  await writeFile(odd, "x");
  expect(await project.paths("**/*.txt", "data/a*")).toEqual(["b.txt", "data/a.csv"]);
  for (const pattern of ["data", "data/*.csv", "**/*.csv"]) {
    await expect(project.paths(pattern)).rejects.toMatchObject({ code: "INVALID_PATH" });
  }
});

test.each(["data", "data/closed"])("S0-35 an input that may not be read (%s) is named", async (closed) => {
  await using project = await makeProject(["data/open", "data/closed"]);
  await chmod(project.root, 0o755);
  await chmod(join(project.project, closed), 0);
  using _ = asOrdinaryUser();
  await expect(project.paths("data/*")).rejects.toMatchObject({
    code: "INPUT_NOT_FOUND",
    message: `The input ${closed} may not be read`,
  });
});
