import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { utimesSync } from "node:fs";
import { appendFile, chmod, mkdir, readFile, rename, rm, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { AGENT, freshDirectory, runTool, startTool, until } from "./tools-harness.ts";

const KINDS = ["ready", "created", "modified", "removed", "overflow"];

async function startWatch(root: string, path = "", child = startTool(["watch", root, path])) {
  const closed = once(child, "close");
  let bytes = Buffer.alloc(0);
  child.stdout.on("data", (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk]);
  });
  const events = (): string[] => {
    const found: string[] = [];
    for (let at = 0; at + 5 <= bytes.length && at + 5 + bytes.readUInt32LE(at + 1) <= bytes.length; ) {
      const size = bytes.readUInt32LE(at + 1);
      found.push(`${KINDS[bytes.readUInt8(at)]} ${bytes.toString("latin1", at + 5, at + 5 + size)}`);
      at += 5 + size;
    }
    return found;
  };
  await until(() => events().length > 0);
  return {
    child,
    closed,
    events,
    seen: (event: string) => until(() => events().includes(event)),
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await closed;
    },
  };
}

describe("watch", () => {
  it("says ready first, then what is created, modified and removed, at any depth", async () => {
    await using root = await freshDirectory();
    await mkdir(join(root.path, "a/b"), { recursive: true });
    await writeFile(join(root.path, "a/b/old"), "");
    await using watch = await startWatch(root.path);
    expect(watch.events()).toEqual(["ready "]);
    await writeFile(join(root.path, "a/b/new"), "");
    await watch.seen("created a/b/new");
    await appendFile(join(root.path, "a/b/old"), "x");
    await watch.seen("modified a/b/old");
    await chmod(join(root.path, "a/b"), 0o700);
    await watch.seen("modified a/b");
    await unlink(join(root.path, "a/b/old"));
    await watch.seen("removed a/b/old");
  });

  it("tells what a new directory holds and goes on watching in it", async () => {
    await using root = await freshDirectory();
    await using outside = await freshDirectory();
    await mkdir(join(outside.path, "tree/deep/er"), { recursive: true });
    await writeFile(join(outside.path, "tree/deep/er/file"), "");
    await using watch = await startWatch(root.path);
    await rename(join(outside.path, "tree"), join(root.path, "tree"));
    await watch.seen("created tree/deep/er/file");
    expect(watch.events().slice(1)).toEqual([
      "created tree",
      "created tree/deep",
      "created tree/deep/er",
      "created tree/deep/er/file",
    ]);
    await writeFile(join(root.path, "tree/deep/er/later"), "");
    await watch.seen("created tree/deep/er/later");
  });

  it("follows a directory to its new name", async () => {
    await using root = await freshDirectory();
    await mkdir(join(root.path, "old/sub"), { recursive: true });
    await using watch = await startWatch(root.path);
    await rename(join(root.path, "old"), join(root.path, "new"));
    await watch.seen("removed old");
    await watch.seen("created new/sub");
    await writeFile(join(root.path, "new/sub/f"), "");
    await watch.seen("created new/sub/f");
    await rm(join(root.path, "new"), { recursive: true });
    await watch.seen("removed new");
    await mkdir(join(root.path, "old/sub"), { recursive: true });
    await watch.seen("created old/sub");
    expect(watch.events().filter((event) => event.includes("old/sub/"))).toEqual([]);
  });

  it("misses nothing of directories that come and are filled at once", async () => {
    await using root = await freshDirectory();
    await using watch = await startWatch(root.path);
    for (let i = 0; i < 60; i++) {
      await mkdir(join(root.path, `d${i}/x/y`), { recursive: true });
      await writeFile(join(root.path, `d${i}/x/y/f`), "");
    }
    for (let i = 0; i < 60; i++) await watch.seen(`created d${i}/x/y/f`);
  });

  it("says overflow when the kernel dropped events, and watches what came meanwhile", async () => {
    await using root = await freshDirectory();
    const names = [join(root.path, "a"), join(root.path, "b")];
    for (const name of names) await writeFile(name, "");
    await using watch = await startWatch(root.path);
    watch.child.kill("SIGSTOP");
    await until(async () => (await readFile(`/proc/${watch.child.pid}/stat`, "utf8")).includes(") T "));
    const limit = Number(await readFile("/proc/sys/fs/inotify/max_queued_events", "utf8"));
    // The same event twice in a row is one.
    for (let i = 0; i < limit / 2 + 10; i++) for (const name of names) utimesSync(name, i, i);
    await mkdir(join(root.path, "new/deeper"), { recursive: true });
    watch.child.kill("SIGCONT");
    await watch.seen("overflow ");
    await writeFile(join(root.path, "new/deeper/file"), "");
    await watch.seen("created new/deeper/file");
    await rm(join(root.path, "new"), { recursive: true });
    await watch.seen("removed new/deeper");
  });

  it("names the directories beyond the kernel's limit of watches", async (context) => {
    await using root = await freshDirectory();
    for (const name of ["a", "b", "c", "d"]) await mkdir(join(root.path, name));
    const limited = 'echo 3 > /proc/sys/user/max_inotify_watches && exec "$0" tool watch "$1" ""';
    const isPossible = spawnSync("unshare", ["-Ur", "true"]).status === 0;
    if (!isPossible) context.skip("user namespaces are not permitted here");
    await using watch = await startWatch(
      root.path,
      "",
      spawn("unshare", ["-Ur", "sh", "-c", limited, AGENT, root.path]),
    );
    await watch.seen("ready ");
    expect(watch.events().filter((event) => /^overflow [abcd]$/.test(event)).length).toBe(2);
    await writeFile(join(root.path, "file"), "");
    await watch.seen("created file");
  });

  it("ends with the removal of the watched directory, and refuses what is none", async () => {
    await using root = await freshDirectory();
    await mkdir(join(root.path, "d"));
    await writeFile(join(root.path, "f"), "");
    await using watch = await startWatch(root.path, "d");
    await rm(join(root.path, "d"), { recursive: true });
    expect((await watch.closed)[0]).toBe(0);
    expect(watch.events()).toEqual(["ready ", "removed "]);
    expect((await runTool(["watch", root.path, "f"])).stderr).toMatch(/^ENOTDIR /);
  });
});
