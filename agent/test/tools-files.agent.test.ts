import { execFileSync } from "node:child_process";
import { once } from "node:events";
import {
  link,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  stat,
  symlink,
  truncate,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  decodeRecords,
  freshDirectory,
  OLD_KERNEL,
  paths,
  runTool,
  startTool,
  until,
} from "./tools-harness.ts";

const OK = { status: 0, stderr: "" };

describe.each([
  ["with what the kernel has", {}],
  ["with what old kernels have", OLD_KERNEL],
])("file tools %s", (_title, env) => {
  const run = (args: string[], stdin?: Buffer | string) =>
    runTool(args, stdin === undefined ? { env } : { env, stdin });

  it("read sends a whole file, a part of it, and nothing beyond its end", async () => {
    await using root = await freshDirectory();
    const content = Buffer.alloc(300_000, "0123456789");
    await writeFile(join(root.path, "f"), content);
    expect((await run(["read", root.path, "f"])).stdout.equals(content)).toBe(true);
    expect((await run(["read", root.path, "/f", "299995"])).stdout.toString()).toBe("56789");
    expect((await run(["read", root.path, "f", "3", "4"])).stdout.toString()).toBe("3456");
    expect(await run(["read", root.path, "f", "400000"])).toMatchObject({ ...OK, stdout: Buffer.alloc(0) });
  });

  it("read refuses what is missing, a directory, a FIFO and a wrong number, each with its line", async () => {
    await using root = await freshDirectory();
    await mkdir(join(root.path, "d"));
    execFileSync("mkfifo", [join(root.path, "p")]);
    const refusal = async (...args: string[]) => {
      const end = await run(["read", root.path, ...args]);
      expect(end.status).toBe(1);
      expect(end.stderr).toMatch(/^[A-Z]+ [^\n]+\n$/);
      return end.stderr.split(" ")[0];
    };
    expect((await run(["read", root.path, "no"])).stderr).toBe("ENOENT no such file\n");
    expect(await refusal("d")).toBe("EISDIR");
    expect(await refusal("p")).toBe("EINVAL");
    expect(await refusal("d/../p/x")).toBe("ENOTDIR");
    expect(await refusal("no", "1x")).toBe("EINVAL");
    expect(await refusal("no", "99999999999999999999")).toBe("EINVAL");
    expect(await refusal()).toBe("EINVAL");
    expect(await refusal("x".repeat(300))).toBe("ENAMETOOLONG");
  });

  it("read reaches the end of a sparse file of 9 GiB", async () => {
    await using root = await freshDirectory();
    await writeFile(join(root.path, "big"), "");
    await truncate(join(root.path, "big"), 9 * 2 ** 30);
    const end = await run(["read", root.path, "big", String(9 * 2 ** 30 - 3)]);
    expect(end).toMatchObject({ ...OK, stdout: Buffer.alloc(3) });
  });

  it("write makes parents, sets the mode and replaces what was there", async () => {
    await using root = await freshDirectory();
    const content = Buffer.alloc(200_001, 7);
    expect(await run(["write", root.path, "a/b/c", "751"], content)).toMatchObject(OK);
    expect((await readFile(join(root.path, "a/b/c"))).equals(content)).toBe(true);
    expect((await stat(join(root.path, "a/b/c"))).mode & 0o7777).toBe(0o751);
    expect((await stat(join(root.path, "a/b"))).mode & 0o7777).toBe(0o755);
    expect(await run(["write", root.path, "a/b/c", "-"], "new")).toMatchObject(OK);
    expect(await readFile(join(root.path, "a/b/c"), "utf8")).toBe("new");
    expect((await stat(join(root.path, "a/b/c"))).mode & 0o7777).toBe(0o751);
    expect(await run(["write", root.path, "a/b/d", "-"], "")).toMatchObject(OK);
    expect((await stat(join(root.path, "a/b/d"))).mode & 0o7777).toBe(0o644);
    expect(await readdir(join(root.path, "a/b"))).toEqual(["c", "d"]);
  });

  it("write replaces one name of a file with two and leaves the other", async () => {
    await using root = await freshDirectory();
    await writeFile(join(root.path, "one"), "old");
    await link(join(root.path, "one"), join(root.path, "two"));
    expect(await run(["write", root.path, "one", "644"], "new")).toMatchObject(OK);
    expect(await readFile(join(root.path, "two"), "utf8")).toBe("old");
  });

  it("write to a link writes the file it leads to, also one that is not there yet", async () => {
    await using root = await freshDirectory();
    await mkdir(join(root.path, "d/e"), { recursive: true });
    await symlink("../f", join(root.path, "d/relative"));
    await symlink("/d/relative", join(root.path, "absolute"));
    expect(await run(["write", root.path, "absolute", "600"], "text")).toMatchObject(OK);
    expect(await readFile(join(root.path, "f"), "utf8")).toBe("text");
    expect(await readlink(join(root.path, "absolute"))).toBe("/d/relative");
    expect((await lstat(join(root.path, "d/relative"))).isSymbolicLink()).toBe(true);
  });

  it("write appends in place, and makes the file when it is missing", async () => {
    await using root = await freshDirectory();
    expect(await run(["write", root.path, "x/log", "640", "append"], "one\n")).toMatchObject(OK);
    expect(await run(["write", root.path, "x/log", "777", "append"], "two\n")).toMatchObject(OK);
    expect(await readFile(join(root.path, "x/log"), "utf8")).toBe("one\ntwo\n");
    expect((await stat(join(root.path, "x/log"))).mode & 0o7777).toBe(0o640);
  });

  it("write refuses directories, FIFOs, the root, link loops and wrong modes, and leaves nothing", async () => {
    await using root = await freshDirectory();
    await mkdir(join(root.path, "d"));
    execFileSync("mkfifo", [join(root.path, "p")]);
    await symlink("loop", join(root.path, "loop"));
    await writeFile(join(root.path, "f"), "");
    const code = async (...args: string[]) =>
      (await run(["write", root.path, ...args], "x")).stderr.split(" ")[0];
    expect(await code("d", "644")).toBe("EISDIR");
    expect(await code("", "644")).toBe("EISDIR");
    expect(await code("d/..", "644")).toBe("EISDIR");
    expect(await code("p", "644")).toBe("EINVAL");
    expect(await code("p", "644", "append")).toBe("EINVAL");
    expect(await code("loop", "644")).toBe("ELOOP");
    expect(await code("f/x", "644")).toBe("ENOTDIR");
    expect(await code("f", "888")).toBe("EINVAL");
    expect(await code("f", "644", "other")).toBe("EINVAL");
    expect(await readdir(root.path)).toEqual(["d", "f", "loop", "p"]);
    expect(await readdir(join(root.path, "d"))).toEqual([]);
  });

  it("write ended by TERM leaves the old file and nothing beside it", async () => {
    await using root = await freshDirectory();
    await writeFile(join(root.path, "f"), "old");
    const child = startTool(["write", root.path, "f", "644"], { env });
    const end = once(child, "close");
    child.stdin.write(Buffer.alloc(100_000));
    const isWriting = async () => {
      for (const fd of await readdir(`/proc/${child.pid}/fd`)) {
        const at = await readlink(`/proc/${child.pid}/fd/${fd}`).catch(() => "");
        if (at.startsWith(`${root.path}/`) && (await stat(`/proc/${child.pid}/fd/${fd}`)).size > 0)
          return true;
      }
      return false;
    };
    await until(isWriting);
    child.kill("SIGTERM");
    await end;
    expect(await readdir(root.path)).toEqual(["f"]);
    expect(await readFile(join(root.path, "f"), "utf8")).toBe("old");
  });

  it("stat describes the entry itself, a link by its target", async () => {
    await using root = await freshDirectory();
    await writeFile(join(root.path, "f"), "12345", { mode: 0o640 });
    await symlink("/etc/passwd", join(root.path, "l"));
    const one = async (path: string) => decodeRecords((await run(["stat", root.path, path])).stdout);
    const st = await stat(join(root.path, "f"), { bigint: true });
    expect(await one("f")).toEqual([
      {
        type: "file",
        mode: 0o640,
        uid: Number(st.uid),
        gid: Number(st.gid),
        size: 5n,
        mtimeNs: st.mtimeNs,
        ctimeNs: st.ctimeNs,
        inode: st.ino,
        path: "",
        target: "",
      },
    ]);
    expect(await one("l")).toMatchObject([{ type: "symlink", target: "/etc/passwd", path: "" }]);
    expect(await one("")).toMatchObject([{ type: "directory", path: "" }]);
    expect(await one("../..")).toEqual(await one("/"));
    expect((await run(["stat", root.path, "l/x"])).stderr).toBe("ENOENT no such file\n");
  });

  it("list sorts by bytes, shows links and other types, and enters directories only when asked", async () => {
    await using root = await freshDirectory();
    await mkdir(join(root.path, "b/inner"), { recursive: true });
    for (const name of ["b/z", "a", "B", "b.txt"]) await writeFile(join(root.path, name), "");
    await symlink("b", join(root.path, "link"));
    execFileSync("mkfifo", [join(root.path, "p")]);
    expect(await paths(["list", root.path, "", "0"], { env })).toEqual(["B", "a", "b", "b.txt", "link", "p"]);
    const all = ["B", "a", "b", "b/inner", "b/z", "b.txt", "link", "p"];
    expect(await paths(["list", root.path, "/", "1"], { env })).toEqual(all);
    expect(await paths(["list", root.path, "link", "1"], { env })).toEqual(["inner", "z"]);
    const types = decodeRecords((await run(["list", root.path, ".", "0"])).stdout).map(
      (record) => record.type,
    );
    expect(types).toEqual(["file", "file", "directory", "file", "symlink", "other"]);
    expect((await run(["list", root.path, "a", "1"])).stderr).toMatch(/^ENOTDIR /);
    expect((await run(["list", root.path, "no", "1"])).stderr).toMatch(/^ENOENT /);
    expect((await run(["list", root.path, "b", "2"])).stderr).toMatch(/^EINVAL usage/);
  });

  it("list of the whole tree does not enter other file systems", async () => {
    expect((await stat("/dev/pts")).dev).not.toBe((await stat("/dev")).dev);
    expect(await paths(["list", "/", "dev/pts", "1"], { env })).toContain("ptmx");
    const found = await paths(["list", "/", "dev", "1"], { env });
    expect(found).toContain("pts");
    expect(found.filter((path) => path.startsWith("pts/"))).toEqual([]);
  });

  it("mkdir makes parents, takes an existing directory and refuses a file in the way", async () => {
    await using root = await freshDirectory();
    expect(await run(["mkdir", root.path, "a/b/c", "700"])).toMatchObject(OK);
    expect((await stat(join(root.path, "a/b/c"))).mode & 0o7777).toBe(0o700);
    expect(await run(["mkdir", root.path, "a/b/c/", "755"])).toMatchObject(OK);
    expect((await stat(join(root.path, "a/b/c"))).mode & 0o7777).toBe(0o700);
    expect(await run(["mkdir", root.path, "", "755"])).toMatchObject(OK);
    await symlink("a", join(root.path, "l"));
    expect(await run(["mkdir", root.path, "l", "755"])).toMatchObject(OK);
    expect(await run(["mkdir", root.path, "l/x/../y", "755"])).toMatchObject(OK);
    expect(await readdir(join(root.path, "a"))).toEqual(["b", "x", "y"]);
    await writeFile(join(root.path, "f"), "");
    expect((await run(["mkdir", root.path, "f", "755"])).stderr).toMatch(/^EEXIST /);
    expect((await run(["mkdir", root.path, "f/x", "755"])).stderr).toMatch(/^ENOTDIR /);
  });

  it("move renames files, links and directories, and makes the target's parents", async () => {
    await using root = await freshDirectory();
    await mkdir(join(root.path, "d"));
    await writeFile(join(root.path, "d/f"), "x");
    await symlink("d", join(root.path, "l"));
    expect(await run(["move", root.path, "d", "new/place"])).toMatchObject(OK);
    expect(await readFile(join(root.path, "new/place/f"), "utf8")).toBe("x");
    expect(await run(["move", root.path, "l", "m"])).toMatchObject(OK);
    expect(await readlink(join(root.path, "m"))).toBe("d");
    await writeFile(join(root.path, "old"), "old");
    expect(await run(["move", root.path, "new/place/f", "old"])).toMatchObject(OK);
    expect(await readFile(join(root.path, "old"), "utf8")).toBe("x");
    const code = async (from: string, to: string) =>
      (await run(["move", root.path, from, to])).stderr.split(" ")[0];
    expect(await code("gone", "made/for/nothing")).toBe("ENOENT");
    expect(await code("new", "new/inside")).toBe("EINVAL");
    expect(await code("old", "new")).toBe("EISDIR");
    expect(await code("", "x")).toBe("EBUSY");
    expect(await code("old", "new/..")).toBe("EBUSY");
    expect(await readdir(root.path)).toEqual(["m", "new", "old"]);
  });

  it("remove takes all a directory holds, follows no link and refuses the root", async () => {
    await using root = await freshDirectory();
    await mkdir(join(root.path, "d/e/f"), { recursive: true });
    await mkdir(join(root.path, "keep"));
    await writeFile(join(root.path, "keep/file"), "");
    await writeFile(join(root.path, "d/e/f/g"), "");
    await symlink("../keep", join(root.path, "d/link"));
    expect(await run(["remove", root.path, "d"])).toMatchObject(OK);
    expect(await run(["remove", root.path, "d"])).toMatchObject(OK);
    expect(await run(["remove", root.path, "d/e/f"])).toMatchObject(OK);
    await symlink("keep", join(root.path, "l"));
    expect(await run(["remove", root.path, "l"])).toMatchObject(OK);
    expect(await paths(["list", root.path, "", "1"])).toEqual(["keep", "keep/file"]);
    for (const path of ["", "/", ".", "..", "keep/.."])
      expect((await run(["remove", root.path, path])).stderr).toMatch(/^EBUSY /);
  });
});
