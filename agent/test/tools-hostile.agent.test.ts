import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile, rename, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  AGENT,
  decodeRecords,
  freshDirectory,
  OLD_KERNEL,
  paths,
  runTool,
  startTool,
  until,
} from "./tools-harness.ts";
import { archive, member, pax } from "./tools-tar-writer.ts";

const SECRET = "the secret outside";

/** Exchanges directory and link as fast as it can, until it is disposed of. */
async function startSwapping(directory: string, link: string): Promise<AsyncDisposable> {
  const script = `
    const { renameSync } = require("node:fs");
    const [directory, link] = process.argv.slice(1);
    const aside = directory + ".aside";
    const swap = (from, to) => { try { renameSync(from, to); return true; } catch { return false; } };
    process.stdout.write("swapping");
    for (let n = 0; ; n++) {
      // A tool may have made the directory while it was away: that one is put elsewhere.
      swap(directory, aside) || swap(directory, aside + n);
      swap(link, directory);
      swap(directory, link);
      swap(aside, directory) || (swap(directory, aside + n) && swap(aside, directory));
    }`;
  const child = spawn(process.execPath, ["-e", script, directory, link], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const closed = once(child, "close");
  await once(child.stdout, "data");
  return {
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await closed;
    },
  };
}

async function plantRace(base: string, target: string): Promise<void> {
  await mkdir(join(base, "root/dir/sub"), { recursive: true });
  await mkdir(join(base, "outside/sub"), { recursive: true });
  await writeFile(join(base, "root/dir/f"), "inside");
  await writeFile(join(base, "outside/f"), SECRET);
  await writeFile(join(base, "outside/sub/f"), SECRET);
  await symlink(target, join(base, "root/link"));
}

async function expectOutsideUntouched(base: string): Promise<void> {
  expect(await paths(["list", base, "outside", "1"])).toEqual(["f", "sub", "sub/f"]);
  expect(await readFile(join(base, "outside/f"), "utf8")).toBe(SECRET);
  expect(await readFile(join(base, "outside/sub/f"), "utf8")).toBe(SECRET);
}

describe.each([
  ["with what the kernel has", {}],
  ["with what old kernels have", OLD_KERNEL],
])("hostile trees %s", (_title, env) => {
  const run = (args: string[], stdin: Buffer | string = "") => runTool(args, { env, stdin });

  it("links and .. never lead out of the root", async () => {
    await using base = await freshDirectory();
    const root = join(base.path, "root");
    await mkdir(join(root, "d"), { recursive: true });
    await writeFile(join(base.path, "secret"), SECRET);
    const targets = [
      "/etc/passwd",
      "../secret",
      "../../../../../../etc/passwd",
      `${base.path}/secret`,
      "/proc/self/root/etc/passwd",
    ];
    for (const [index, target] of targets.entries()) await symlink(target, join(root, `l${index}`));
    await symlink("..", join(root, "up"));
    await symlink(base.path, join(root, "out"));
    const asked = [...targets.keys()].map((index) => `l${index}`);
    for (const path of [
      ...asked,
      "../secret",
      "d/../../secret",
      "up/secret",
      "up/up/secret",
      "out/secret",
      "/../secret",
    ])
      expect(await run(["read", root, path]), path).toMatchObject({
        status: 1,
        stderr: "ENOENT no such file\n",
      });
    for (const path of ["../new", "d/../../new", "up/new", "up/up/new"])
      expect(await run(["write", root, path, "644"], "x")).toMatchObject({ status: 0 });
    expect((await run(["write", root, "out/new", "644"], "x")).status).toBe(1);
    expect(await run(["remove", root, "../secret"])).toMatchObject({ status: 0 });
    expect(await run(["remove", root, "up/secret"])).toMatchObject({ status: 0 });
    expect(await run(["mkdir", root, "../made", "755"])).toMatchObject({ status: 0 });
    expect(await run(["move", root, "new", "../../moved"])).toMatchObject({ status: 0 });
    expect(await readdir(base.path)).toEqual(["root", "secret"]);
    expect(await readdir(root)).toEqual(["d", "l0", "l1", "l2", "l3", "l4", "made", "moved", "out", "up"]);
  });

  it("link loops and long chains of links end with ELOOP", async () => {
    await using root = await freshDirectory();
    await symlink("b", join(root.path, "a"));
    await symlink("a", join(root.path, "b"));
    for (let i = 0; i < 50; i++) await symlink(`c${i + 1}`, join(root.path, `c${i}`));
    await writeFile(join(root.path, "c50"), "end");
    for (const tool of ["read", "list", "tar", "scan"]) {
      const rest = tool === "list" ? ["1"] : [];
      expect((await run([tool, root.path, "a", ...rest])).stderr, tool).toMatch(/^ELOOP /);
    }
    expect((await run(["read", root.path, "c0"])).stderr).toMatch(/^ELOOP /);
    expect((await run(["read", root.path, "c20"])).stdout.toString()).toBe("end");
    expect((await run(["write", root.path, "a/x", "644"])).stderr).toMatch(/^ELOOP /);
  });

  it.each([
    ["absolute", (base: string) => join(base, "outside")],
    ["relative", () => "../outside"],
  ])(
    "no tool touches the outside while a directory and a link are swapped, the link %s",
    async (_kind, target) => {
      await using base = await freshDirectory();
      await plantRace(base.path, target(base.path));
      const root = join(base.path, "root");
      const input = archive(
        ...Array.from({ length: 20 }, (_, i) => member({ name: `sub/m${i}`, content: "x" })),
      );
      await using _swapping = await startSwapping(join(root, "dir"), join(root, "link"));
      // The race is real: who goes by plain paths is led out.
      const isLedOut = async () => (await readFile(join(root, "dir/f"), "utf8").catch(() => "")) === SECRET;
      await until(isLedOut);
      const rounds: (() => Promise<Buffer>)[] = [
        async () => (await run(["read", root, "dir/f"])).stdout,
        async () => (await run(["write", root, "dir/f", "644"], "written")).stdout,
        async () => (await run(["write", root, "dir/sub/g", "644", "append"], "appended")).stdout,
        async () => (await run(["mkdir", root, "dir/sub/made", "755"])).stdout,
        async () => (await run(["cat", root, ""], "dir/f\0dir/sub/f\0")).stdout,
        async () => (await run(["tar", root, "dir"])).stdout,
        async () => (await run(["tar", root, ""])).stdout,
        async () => (await run(["untar", root, "dir"], input)).stdout,
        async () => (await run(["move", root, "dir/sub/g", "dir/h"])).stdout,
        async () => (await run(["remove", root, "dir/sub"])).stdout,
      ];
      for (let i = 0; i < 25; i++)
        for (const round of rounds) expect((await round()).includes(SECRET)).toBe(false);
      await until(isLedOut);
      await expectOutsideUntouched(base.path);
    },
  );

  it("names with newlines, quotes, bytes that are no UTF-8 and 255 bytes are names like others", async () => {
    await using root = await freshDirectory();
    const names = ["new\nline", "q\"u'o`te$(x)", " ", "-rf", "\\", "x".repeat(255), "\xff\xfe\x80"].sort();
    for (const name of names) {
      const raw = Buffer.concat([Buffer.from(`${root.path}/`), Buffer.from(name, "latin1")]);
      await writeFile(raw, "content");
    }
    expect((await paths(["list", root.path, "", "1"], { env })).sort()).toEqual(names);
    expect((await paths(["scan", root.path, ""], { env })).sort()).toEqual(["", ...names]);
    const { stdout } = await run(
      ["cat", root.path, ""],
      Buffer.from(names.map((name) => `${name}\0`).join(""), "latin1"),
    );
    expect(stdout.length).toBe(names.length * (9 + "content".length));
    const shell = 'exec "$0" tool "$1" "$2" "$(printf "\\377\\376\\200")"';
    const read = execFileSync("/bin/sh", ["-c", shell, AGENT, "read", root.path], { env });
    expect(read.toString()).toBe("content");
    execFileSync("/bin/sh", ["-c", shell, AGENT, "remove", root.path], { env });
    expect((await paths(["list", root.path, "", "0"], { env })).length).toBe(names.length - 1);
    expect((await run(["stat", root.path, "no\nsuch"])).stderr).toBe("ENOENT no such file\n");
  });

  it("trees 5,000 directories deep are made, read, listed, archived, counted and removed", async () => {
    await using root = await freshDirectory();
    const deep = Array.from({ length: 5000 }, () => "d").join("/");
    expect(await run(["mkdir", root.path, deep, "755"])).toMatchObject({ status: 0, stderr: "" });
    expect(await run(["write", root.path, `${deep}/f`, "644"], "x")).toMatchObject({ status: 0, stderr: "" });
    expect((await run(["read", root.path, `${deep}/f`])).stdout.toString()).toBe("x");
    const listed = await paths(["list", root.path, "", "1"], { env });
    expect(listed.length).toBe(5001);
    expect(listed.at(-1)).toBe(`${deep}/f`);
    expect(decodeRecords((await run(["scan", root.path, ""])).stdout).length).toBe(5002);
    expect((await run(["du", root.path, ""])).stdout.readBigUInt64LE(8)).toBe(5001n);
    const tar = await run(["tar", root.path, ""]);
    expect(await run(["untar", root.path, "copy"], tar.stdout)).toMatchObject({ status: 0, stderr: "" });
    expect((await run(["read", root.path, `copy/${deep}/f`])).stdout.toString()).toBe("x");
    expect(await run(["remove", root.path, "d"])).toMatchObject({ status: 0, stderr: "" });
    expect(await readdir(root.path)).toEqual(["copy"]);
  });

  it("a directory that is moved out of the root during the walk does not take the walk with it", async () => {
    await using base = await freshDirectory();
    const levels = (count: number) => Array.from({ length: count }, () => "a").join("/");
    const root = join(base.path, "root");
    const files = Array.from({ length: 3000 }, (_, i) => [
      pax({ path: `${levels(50)}/${"f".repeat(200)}${i}` }),
      member({ name: "f" }),
    ]);
    expect(await run(["untar", base.path, "root"], archive(...files.flat()))).toMatchObject({
      status: 0,
      stderr: "",
    });
    await writeFile(join(root, levels(4), "z"), "");
    await mkdir(join(base.path, "outside"));
    await writeFile(join(base.path, "outside/zz"), SECRET);
    const child = startTool(["list", root, "", "1"], { env });
    const closed = once(child, "close");
    // Nobody reads yet: the tool stands among the files at the bottom, its socket full.
    await until(async () => (await readFile(`/proc/${child.pid}/wchan`, "utf8")).includes("send"));
    await rename(join(root, levels(5)), join(base.path, "outside/a"));
    const chunks: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
    expect((await closed)[0]).toBe(0);
    const told = decodeRecords(Buffer.concat(chunks)).map((record) => record.path);
    expect(told.length).toBe(50 + 3000 + 1);
    expect(told.at(-1)).toBe(`${levels(4)}/z`);
  });

  it("a directory of 20,000 files is told whole", async () => {
    await using root = await freshDirectory();
    const many = archive(...Array.from({ length: 20_000 }, (_, i) => member({ name: `d/f${i}` })));
    expect(await run(["untar", root.path, ""], many)).toMatchObject({ status: 0 });
    expect((await paths(["list", root.path, "d", "0"], { env })).length).toBe(20_000);
    expect(await run(["remove", root.path, "d"])).toMatchObject({ status: 0 });
  });
});
