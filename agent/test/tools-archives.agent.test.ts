import { execFileSync } from "node:child_process";
import { once } from "node:events";
import {
  chmod,
  link,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  stat,
  symlink,
  truncate,
  utimes,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { freshDirectory, nextOutput, paths, plainUser, runTool, startTool } from "./tools-harness.ts";
import { archive, member, pax, sign } from "./tools-tar-writer.ts";

const LONG = `${"l".repeat(200)}/${"m".repeat(200)}`;
const OK = { status: 0, stderr: "" };

async function plant(root: string): Promise<void> {
  await mkdir(join(root, LONG), { recursive: true });
  await mkdir(join(root, "empty"));
  await writeFile(join(root, LONG, "file"), "long");
  await mkdir(join(root, "p".repeat(90), "q".repeat(50)), { recursive: true });
  await writeFile(join(root, "p".repeat(90), "q".repeat(50), "file"), "prefix");
  await writeFile(join(root, "run.sh"), "#!/bin/sh\n", { mode: 0o755 });
  await writeFile(join(root, "new\nline \"quoted\" 'too'"), "odd");
  await writeFile(join(root, "ünïcode"), "utf8");
  await writeFile(Buffer.concat([Buffer.from(root), Buffer.from([0x2f, 0xff, 0xfe])]), "not utf8");
  await writeFile(join(root, "data"), Buffer.alloc(200_123, "abc"));
  await utimes(join(root, "data"), 1_000_000_000, 1_000_000_000);
  await link(join(root, "data"), join(root, "hard"));
  await symlink("data", join(root, "soft"));
  await symlink(`/etc/${"x".repeat(300)}`, join(root, "far"));
}

/** diff -r knows names and contents; -ls adds modes, links and link counts. */
function describeTree(root: string): string {
  const format = "%P\\0%y\\0%m\\0%l\\0%n\\0";
  const lines = execFileSync("find", [root, "-mindepth", "1", "!", "-type", "p", "-printf", format], {
    encoding: "latin1",
  }).split("\0");
  const entries: string[] = [];
  for (let i = 0; i + 4 < lines.length; i += 5) entries.push(lines.slice(i, i + 5).join("|"));
  return entries.sort().join("\n");
}

function expectSameTree(a: string, b: string): void {
  expect(describeTree(b)).toBe(describeTree(a));
  execFileSync("diff", ["-r", "--no-dereference", a, b]);
}

describe("tar", () => {
  it("is read by GNU tar: names, modes, times, links and hard links come back", async () => {
    await using root = await freshDirectory();
    await using out = await freshDirectory();
    await plant(root.path);
    const end = await runTool(["tar", root.path, ""]);
    expect(end).toMatchObject(OK);
    execFileSync("tar", ["-xpf", "-", "-C", out.path], { input: end.stdout });
    expectSameTree(root.path, out.path);
    expect((await stat(join(out.path, "data"))).mtimeMs).toBe(1_000_000_000_000);
    expect(execFileSync("tar", ["-tvf", "-"], { input: end.stdout, encoding: "utf8" })).toContain(
      "hard link to data",
    );
  });

  it("leaves out FIFOs, and takes one file by its name", async () => {
    await using root = await freshDirectory();
    await mkdir(join(root.path, "d"));
    execFileSync("mkfifo", [join(root.path, "d/p")]);
    await writeFile(join(root.path, "d/f"), "x");
    await symlink("d/f", join(root.path, "l"));
    const names = async (path: string) =>
      execFileSync("tar", ["-tf", "-"], {
        input: (await runTool(["tar", root.path, path])).stdout,
        encoding: "utf8",
      });
    expect(await names("")).toBe("d/\nd/f\nl\n");
    expect(await names("d")).toBe("f\n");
    expect(await names("l")).toBe("f\n");
    expect((await runTool(["tar", root.path, "d/p"])).stderr).toMatch(/^EINVAL /);
    expect((await runTool(["tar", root.path, "none"])).stderr).toMatch(/^ENOENT /);
  });

  it("says the size of a file of 9 GiB in an extended header", async () => {
    await using root = await freshDirectory();
    await writeFile(join(root.path, "big"), "");
    await truncate(join(root.path, "big"), 9 * 2 ** 30);
    const child = startTool(["tar", root.path, ""]);
    const closed = once(child, "close");
    const chunk = await nextOutput(child);
    child.kill("SIGKILL");
    await closed;
    expect(chunk.toString("latin1", 156, 157)).toBe("x");
    expect(chunk.toString("latin1", 512, 600)).toContain(`19 size=${9 * 2 ** 30}\n`);
    expect(chunk.toString("latin1", 1024, 1027)).toBe("big");
  });

  it("ends with 1 but a whole archive when something cannot be read", async () => {
    await using root = await freshDirectory();
    const user = await plainUser(root.path);
    await mkdir(join(root.path, "d/closed"), { recursive: true });
    await writeFile(join(root.path, "d/secret"), "s", { mode: 0o000 });
    await writeFile(join(root.path, "d/z"), "z");
    await chmod(join(root.path, "d/closed"), 0o000);
    const end = await runTool(["tar", root.path, "d"], user);
    expect(end.status).toBe(1);
    expect(end.stderr).toMatch(/^EACCES [^\n]*: closed\n$/);
    expect(execFileSync("tar", ["-tf", "-"], { input: end.stdout, encoding: "utf8" })).toBe("closed/\nz\n");
  });
});

describe("untar", () => {
  it.each(["gnu", "oldgnu", "pax"])("extracts what GNU tar writes as %s", async (format) => {
    await using root = await freshDirectory();
    await using out = await freshDirectory();
    await plant(root.path);
    const input = execFileSync("tar", ["-H", format, "-cf", "-", "-C", root.path, "."], {
      maxBuffer: 2 ** 26,
    });
    expect(await runTool(["untar", out.path, ""], { stdin: input })).toMatchObject(OK);
    expectSameTree(root.path, out.path);
    expect((await stat(join(out.path, "data"))).mtimeMs).toBe(1_000_000_000_000);
  });

  it("extracts what tar writes, over what is there and again", async () => {
    await using root = await freshDirectory();
    await using out = await freshDirectory();
    await plant(root.path);
    const { stdout } = await runTool(["tar", root.path, ""]);
    await mkdir(join(out.path, "new/place"), { recursive: true });
    await symlink("/etc/passwd", join(out.path, "new/place/data"));
    await writeFile(join(out.path, "new/place/empty"), "a file where a directory comes");
    for (let i = 0; i < 2; i++)
      expect(await runTool(["untar", out.path, "new/place"], { stdin: stdout })).toMatchObject(OK);
    expectSameTree(root.path, join(out.path, "new/place"));
  });

  it("drops set-id and sticky bits, and fills directories that deny writing", async () => {
    await using out = await freshDirectory();
    const user = await plainUser(out.path);
    await mkdir(join(out.path, "o"));
    await chmod(join(out.path, "o"), 0o777);
    const input = archive(
      member({ name: "locked/", type: "5", mode: 0o555 }),
      member({ name: "locked/f", content: "x", mode: 0o4755 }),
      member({ name: "old-style-directory/" }),
    );
    expect(await runTool(["untar", out.path, "o"], { ...user, stdin: input })).toMatchObject(OK);
    expect((await stat(join(out.path, "o/locked"))).mode & 0o7777).toBe(0o555);
    expect((await stat(join(out.path, "o/locked/f"))).mode & 0o7777).toBe(0o755);
    expect((await stat(join(out.path, "o/old-style-directory"))).isDirectory()).toBe(true);
  });

  it("believes extended headers about path, target and size", async () => {
    await using out = await freshDirectory();
    const input = archive(
      pax({ path: "real", size: "4" }),
      member({ name: "wrong", content: "four", size: 0 }),
      pax({ linkpath: "real" }),
      member({ name: "l", type: "2", link: "wrong" }),
      member({ name: "@LongLink", type: "L", content: `gnu${"x".repeat(200)}\0` }),
      member({ name: "cut", content: "g" }),
      member({ name: "plain", content: "p" }),
    );
    expect(await runTool(["untar", out.path, ""], { stdin: input })).toMatchObject(OK);
    expect(await readdir(out.path)).toEqual([`gnu${"x".repeat(200)}`, "l", "plain", "real"]);
    expect(await readFile(join(out.path, "real"), "utf8")).toBe("four");
    expect(await readlink(join(out.path, "l"))).toBe("real");
  });

  const hostile: [string, string, Buffer][] = [
    ["an absolute name", "EPERM", archive(member({ name: "/tmp/aido-escaped", content: "x" }))],
    ["a name with ..", "EPERM", archive(member({ name: "a/../../escaped", content: "x" }))],
    [
      "an extended name with ..",
      "EPERM",
      archive(pax({ path: "../escaped" }), member({ name: "a", content: "x" })),
    ],
    ["a device", "EPERM", archive(member({ name: "null", type: "3" }))],
    ["a FIFO", "EPERM", archive(member({ name: "p", type: "6" }))],
    [
      "a file beneath a link",
      "ELOOP",
      archive(member({ name: "l", type: "2", link: ".." }), member({ name: "l/escaped", content: "x" })),
    ],
    [
      "a directory beneath a link",
      "ELOOP",
      archive(member({ name: "l", type: "2", link: "/tmp" }), member({ name: "l/aido-escaped/", type: "5" })),
    ],
    ["a hard link out of the tree", "EPERM", archive(member({ name: "h", type: "1", link: "../outside" }))],
    ["an absolute hard link", "EPERM", archive(member({ name: "h", type: "1", link: "/etc/passwd" }))],
    [
      "a hard link through a link",
      "ELOOP",
      archive(
        member({ name: "l", type: "2", link: ".." }),
        member({ name: "h", type: "1", link: "l/outside" }),
      ),
    ],
    ["a hard link to nothing", "ENOENT", archive(member({ name: "h", type: "1", link: "none" }))],
    ["a wrong checksum", "EBADMSG", archive(member({ name: "a", content: "x", checksum: 1 }))],
    [
      "an archive cut off in a header",
      "EBADMSG",
      archive(member({ name: "a", content: "x" })).subarray(0, 100),
    ],
    [
      "an archive cut off in a file",
      "EBADMSG",
      archive(member({ name: "a", content: "x".repeat(600) })).subarray(0, 700),
    ],
    ["an archive without an end", "EBADMSG", member({ name: "l", content: "x" })],
    ["nothing", "EBADMSG", Buffer.alloc(0)],
    [
      "an extended header with a wrong length",
      "EBADMSG",
      archive(member({ name: "x", type: "x", content: "99 path=a\n" })),
    ],
    ["an extended header of 4 GiB", "EBADMSG", archive(member({ name: "x", type: "x", size: 2 ** 32 }))],
    ["a name with a NUL", "EBADMSG", archive(pax({ path: "a\0b" }), member({ name: "a", content: "x" }))],
    [
      "a sparse member",
      "ENOTSUP",
      archive(pax({ "GNU.sparse.major": "1" }), member({ name: "a", content: "x" })),
    ],
    ["an unknown type", "ENOTSUP", archive(member({ name: "a", type: "M", content: "x" }))],
    ["a member without a name", "EISDIR", archive(member({ name: "./", type: "2", link: "x" }))],
    [
      "a name of 300 bytes",
      "ENAMETOOLONG",
      archive(pax({ path: "n".repeat(300) }), member({ name: "a", content: "x" })),
    ],
  ];

  it.each(hostile)("refuses %s with %s and writes nothing outside", async (_title, code, input) => {
    await using out = await freshDirectory();
    await mkdir(join(out.path, "in"));
    await writeFile(join(out.path, "outside"), "o");
    const end = await runTool(["untar", out.path, "in"], { stdin: input });
    expect(end.status).toBe(1);
    expect(end.stderr).toMatch(new RegExp(`^${code} [^\n]+\n$`));
    expect(await readdir(out.path)).toEqual(["in", "outside"]);
    expect((await stat(join(out.path, "outside"))).nlink).toBe(1);
    expect((await readdir(join(out.path, "in"))).filter((name) => name !== "l")).toEqual([]);
    await expect(lstat("/tmp/aido-escaped")).rejects.toThrow("ENOENT");
  });

  it("refuses a file where a directory with contents is, and keeps those", async () => {
    await using out = await freshDirectory();
    await mkdir(join(out.path, "d"));
    await writeFile(join(out.path, "d/f"), "");
    const end = await runTool(["untar", out.path, ""], {
      stdin: archive(member({ name: "d", content: "x" })),
    });
    expect(end.stderr).toMatch(/^EISDIR /);
    expect(await paths(["list", out.path, "", "1"])).toEqual(["d", "d/f"]);
  });

  it("takes damaged archives of every kind without a crash", async () => {
    await using out = await freshDirectory();
    const whole = archive(
      pax({ path: "some/name", mtime: "12.5" }),
      member({ name: "a", content: "content" }),
      member({ name: "b", type: "2", link: "a" }),
    );
    let seed = 42;
    const random = (below: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
      return seed % below;
    };
    for (let round = 0; round < 150; round++) {
      const damaged = Buffer.from(whole);
      for (let i = 0; i < 3; i++) damaged[random(5) * 512 + random(300)] = random(256);
      // With right checksums the damage reaches what lies behind them.
      for (const header of [0, 2, 4]) sign(damaged.subarray(header * 512, header * 512 + 512));
      const end = await runTool(["untar", out.path, "x"], { stdin: damaged });
      expect([0, 1]).toContain(end.status);
    }
    expect(await readdir(out.path)).toEqual(["x"]);
  });
});
