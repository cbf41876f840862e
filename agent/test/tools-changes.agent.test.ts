import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { link, mkdir, stat, symlink, truncate, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  decodeRecords,
  freshDirectory,
  nextOutput,
  OLD_KERNEL,
  paths,
  plainUser,
  runTool,
  startTool,
  until,
} from "./tools-harness.ts";

interface Answer {
  readonly status: number;
  readonly content: string;
}

function decodeAnswers(bytes: Buffer): Answer[] {
  const answers: Answer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const size = Number(bytes.readBigUInt64LE(at + 1));
    answers.push({ status: bytes.readUInt8(at), content: bytes.toString("latin1", at + 9, at + 9 + size) });
    at += 9 + size;
  }
  return answers;
}

describe("scan", () => {
  it("tells the directory itself, then everything beneath it, parents first", async () => {
    await using root = await freshDirectory();
    await mkdir(join(root.path, "d/e"), { recursive: true });
    await writeFile(join(root.path, "d/e/f"), "123");
    await symlink("/nowhere", join(root.path, "d/l"));
    const records = decodeRecords((await runTool(["scan", root.path, ""])).stdout);
    expect(records.map((record) => record.path).sort()).toEqual(["", "d", "d/e", "d/e/f", "d/l"]);
    expect(records[0]).toMatchObject({ path: "", type: "directory" });
    const seen = new Set<string>();
    for (const { path } of records) {
      if (path.includes("/")) expect(seen).toContain(path.slice(0, path.lastIndexOf("/")));
      seen.add(path);
    }
    expect(records.find((record) => record.path === "d/l")).toMatchObject({ target: "/nowhere" });
    expect((await runTool(["scan", root.path, "d/e/f"])).stderr).toMatch(/^ENOTDIR /);
    expect((await runTool(["scan", root.path, "", "x"])).stderr).toMatch(/^EINVAL /);
  });

  it("since a time tells changed entries and all entries of changed directories, no others", async () => {
    await using root = await freshDirectory();
    for (const name of ["same", "content", "entries", "entries/below"]) {
      await mkdir(join(root.path, name));
      await writeFile(join(root.path, name, "a"), "1");
      await writeFile(join(root.path, name, "b"), "1");
    }
    const before = await stat(join(root.path, "entries/below"), { bigint: true });
    // The kernel's stamps lag behind its clock: what is old must be older than that.
    await until(() => BigInt(Date.now()) * 1_000_000n > before.ctimeNs + 200_000_000n);
    const since = BigInt(Date.now()) * 1_000_000n - 100_000_000n;
    await writeFile(join(root.path, "content/a"), "2");
    await unlink(join(root.path, "entries/b"));
    const told = await paths(["scan", root.path, "", String(since)]);
    expect(told.sort()).toEqual(["", "content/a", "entries", "entries/a", "entries/below"]);
    expect((await paths(["scan", root.path, ""])).length).toBe(12);
  });
});

describe.each([
  ["with what the kernel has", {}],
  ["with what old kernels have", OLD_KERNEL],
])("cat %s", (_title, env) => {
  it("answers every path in order with a status and the content", async () => {
    await using root = await freshDirectory();
    const user = await plainUser(root.path);
    await mkdir(join(root.path, "d/sub"), { recursive: true });
    await writeFile(join(root.path, "d/f"), "one");
    await writeFile(join(root.path, "d/sub/empty"), "");
    await writeFile(join(root.path, "d/big"), Buffer.alloc(3_000_000, "z"));
    await writeFile(join(root.path, "d/secret"), "s", { mode: 0o000 });
    await symlink("f", join(root.path, "d/l"));
    await symlink("sub", join(root.path, "d/subl"));
    execFileSync("mkfifo", [join(root.path, "d/p")]);
    const asked = [
      "f",
      "none",
      "l",
      "sub",
      "p",
      "secret",
      "subl/empty",
      "../aido-agent",
      "big",
      "sub/empty",
      "none/x",
    ];
    const end = await runTool(["cat", root.path, "d"], {
      ...user,
      env,
      stdin: asked.map((path) => `${path}\0`).join(""),
    });
    expect(end).toMatchObject({ status: 0, stderr: "" });
    const answers = decodeAnswers(end.stdout);
    expect(answers.map((answer) => answer.status)).toEqual([0, 1, 2, 2, 2, 3, 1, 1, 0, 0, 1]);
    expect(answers[0]).toEqual({ status: 0, content: "one" });
    expect(answers[8]?.content).toBe("z".repeat(3_000_000));
    expect(answers[9]).toEqual({ status: 0, content: "" });
    for (const index of [1, 2, 3, 4, 5, 6, 7, 10]) expect(answers[index]?.content).toBe("");
  });

  it("answers each question before the next one is asked", async () => {
    await using root = await freshDirectory();
    await writeFile(join(root.path, "f"), "x");
    const child = startTool(["cat", root.path, ""], { env });
    const closed = once(child, "close");
    for (let i = 0; i < 3; i++) {
      child.stdin.write("f\0");
      expect(decodeAnswers(await nextOutput(child))).toEqual([{ status: 0, content: "x" }]);
    }
    child.stdin.end();
    expect((await closed)[0]).toBe(0);
  });

  it("keeps the promised length when a file shrinks while it is sent", async () => {
    await using root = await freshDirectory();
    const size = 8_000_000;
    await writeFile(join(root.path, "f"), Buffer.alloc(size, "z"));
    const child = startTool(["cat", root.path, ""], { env });
    const closed = once(child, "close");
    child.stdin.end("f\0");
    await once(child.stdout, "readable");
    await truncate(join(root.path, "f"), 10);
    const chunks: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
    await closed;
    const [answer] = decodeAnswers(Buffer.concat(chunks));
    expect(answer?.content.length).toBe(size);
    expect(answer?.content.endsWith("\0")).toBe(true);
  });

  it("refuses a last path without its NUL", async () => {
    await using root = await freshDirectory();
    expect((await runTool(["cat", root.path, ""], { env, stdin: "f" })).stderr).toMatch(/^EINVAL /);
  });
});

describe("du", () => {
  it("counts blocks, not lengths, and a file with two names once", async () => {
    await using root = await freshDirectory();
    await mkdir(join(root.path, "d"));
    await writeFile(join(root.path, "d/f"), Buffer.alloc(100_000, 1));
    await link(join(root.path, "d/f"), join(root.path, "d/g"));
    await writeFile(join(root.path, "sparse"), "");
    await truncate(join(root.path, "sparse"), 2 ** 33);
    const { stdout } = await runTool(["du", root.path, ""]);
    const expected = execFileSync("du", ["-s", "--block-size=1", root.path], { encoding: "utf8" });
    expect(stdout.readBigUInt64LE(0)).toBe(BigInt(Number.parseInt(expected, 10)));
    expect(stdout.readBigUInt64LE(8)).toBe(4n);
    expect(stdout.length).toBe(16);
  });
});
