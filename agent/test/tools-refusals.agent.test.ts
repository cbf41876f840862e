import { once } from "node:events";
import { chmod, mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { freshDirectory, plainUser, runTool, startTool } from "./tools-harness.ts";

const OK = { status: 0, stderr: "" };

describe("file tools as a plain user", () => {
  it("tell what may not be read or written, and remove one's own directories whatever their mode", async () => {
    await using root = await freshDirectory();
    const user = await plainUser(root.path);
    await mkdir(join(root.path, "open"));
    await chmod(join(root.path, "open"), 0o777);
    await writeFile(join(root.path, "open/secret"), "s", { mode: 0o000 });
    await mkdir(join(root.path, "closed"), { mode: 0o555 });
    const run = (...args: string[]) => runTool(args, { ...user, stdin: "x" });
    expect((await run("read", root.path, "open/secret")).stderr).toMatch(/^EACCES /);
    expect((await run("write", root.path, "closed/f", "644")).stderr).toMatch(/^EACCES /);
    expect(await run("write", root.path, "open/own/sub/f", "600")).toMatchObject(OK);
    expect(await run("mkdir", root.path, "open/own/sub/none/deeper", "700")).toMatchObject(OK);
    await chmod(join(root.path, "open/own/sub/none"), 0o000);
    await chmod(join(root.path, "open/own/sub"), 0o500);
    expect(await run("remove", root.path, "open/own")).toMatchObject(OK);
    expect(await readdir(join(root.path, "open"))).toEqual(["secret"]);
  });

  it("an unknown tool, a relative root and a missing one are refused with one line", async () => {
    await using root = await freshDirectory();
    expect(await runTool(["chown", root.path, "x"])).toMatchObject({ status: 1 });
    expect((await runTool(["chown", root.path, "x"])).stderr).toMatch(/^EINVAL usage: [^\n]+\n$/);
    expect((await runTool(["read", "tmp", "x"])).stderr).toMatch(/^EINVAL usage: the root/);
    expect((await runTool(["read", join(root.path, "none"), "x"])).stderr).toBe(
      "ENOENT no such file: root\n",
    );
  });

  it("output that nobody reads ends the tool with EPIPE, not with a signal", async () => {
    await using root = await freshDirectory();
    await writeFile(join(root.path, "f"), Buffer.alloc(10_000_000));
    const child = startTool(["read", root.path, "f"]);
    let stderr = "";
    child.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    child.stdout.destroy();
    const [status] = (await once(child, "close")) as [number | null];
    expect(status).toBe(1);
    expect(stderr).toMatch(/^EPIPE /);
  });
});
