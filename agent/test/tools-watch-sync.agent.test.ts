import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, ftruncateSync, openSync, utimesSync, writeSync } from "node:fs";
import { chmod, link, mkdir, readFile, rename, rm, symlink, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  decodeRecords,
  freshDirectory,
  plainUser,
  runTool,
  startTool,
  type ToolRecord,
  until,
} from "./tools-harness.ts";

interface Answer {
  everything: boolean;
  gone: string[];
  records: ToolRecord[];
  contents: Record<string, string>;
}

/** Reads one answer from `bytes`; undefined when it is not complete. */
function decodeAnswer(bytes: Buffer): { answer: Answer; end: number } | undefined {
  const answer: Answer = { everything: false, gone: [], records: [], contents: {} };
  let at = 0;
  const text = (): Buffer | undefined => {
    if (bytes.length < at + 4 || bytes.length < at + 4 + bytes.readUInt32LE(at)) return undefined;
    const start = at;
    at += 4 + bytes.readUInt32LE(at);
    return bytes.subarray(start, at);
  };
  while (at < bytes.length) {
    const part = bytes.readUInt8(at++);
    if (part === 0) return { answer, end: at };
    if (part === 4) {
      answer.everything = true;
    } else if (part === 3) {
      const path = text();
      if (path === undefined) return undefined;
      answer.gone.push(path.toString("latin1", 4));
    } else if (part === 1 || part === 2) {
      const start = at;
      at += 45;
      if (text() === undefined || text() === undefined) return undefined;
      const [record] = decodeRecords(bytes.subarray(start, at));
      if (record === undefined) throw new Error("no record");
      answer.records.push(record);
      const content = part === 2 ? text() : Buffer.alloc(4);
      if (content === undefined) return undefined;
      if (part === 2) answer.contents[record.path] = content.toString("latin1", 4);
    } else {
      throw new Error(`part ${part}`);
    }
  }
  return undefined;
}

async function startSync(root: string, child = startTool(["watch", root, "", "sync"])) {
  const closed = once(child, "close");
  let bytes = Buffer.alloc(0);
  child.stdout.on("data", (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk]);
  });
  await until(() => bytes.length > 0 || child.exitCode !== null);
  expect(bytes).toEqual(Buffer.from([0]));
  bytes = Buffer.alloc(0);
  return {
    child,
    closed,
    async ask(): Promise<Answer> {
      child.stdin.write("?");
      await until(() => decodeAnswer(bytes) !== undefined || child.exitCode !== null);
      const decoded = decodeAnswer(bytes);
      if (decoded === undefined) throw new Error("the tool ended");
      bytes = bytes.subarray(decoded.end);
      return decoded.answer;
    },
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await closed;
    },
  };
}

const pathsOf = ({ records }: Answer) => records.map(({ path }) => path).sort();
const NOTHING: Answer = { everything: false, gone: [], records: [], contents: {} };

describe("watch … sync", () => {
  it("answers with what each changed path is now, once", async () => {
    await using root = await freshDirectory();
    await mkdir(join(root.path, "a"));
    await writeFile(join(root.path, "a/old"), "old");
    await writeFile(join(root.path, "gone"), "");
    await using watch = await startSync(root.path);
    expect(await watch.ask()).toEqual(NOTHING);
    for (let i = 0; i < 10; i++) await writeFile(join(root.path, "a/new"), `new ${i}`);
    await chmod(join(root.path, "a/old"), 0o755);
    await unlink(join(root.path, "gone"));
    await symlink("a/old", join(root.path, "link"));
    await writeFile(join(root.path, "brief"), "");
    await unlink(join(root.path, "brief"));
    const answer = await watch.ask();
    expect(pathsOf(answer)).toEqual(["a/new", "a/old", "link"]);
    expect(answer.gone.sort()).toEqual(["brief", "gone"]);
    expect(answer.contents).toEqual({ "a/new": "new 9", "a/old": "old" });
    expect(answer.records.find(({ path }) => path === "a/old")?.mode).toBe(0o755);
    expect(answer.records.find(({ path }) => path === "link")).toMatchObject({
      type: "symlink",
      target: "a/old",
    });
    expect(await watch.ask()).toEqual(NOTHING);
  });

  it("has every change that was made before it was asked", async () => {
    await using root = await freshDirectory();
    await using watch = await startSync(root.path);
    const file = openSync(join(root.path, "f"), constants.O_CREAT | constants.O_RDWR);
    for (let i = 0; i < 300; i++) {
      ftruncateSync(file, 0);
      writeSync(file, `${i}`, 0);
      expect((await watch.ask()).contents).toEqual({ f: `${i}` });
    }
    closeSync(file);
  });

  it("tells what a directory holds that came, and that all is gone beneath one that went", async () => {
    await using root = await freshDirectory();
    await using outside = await freshDirectory();
    await mkdir(join(root.path, "d/sub"), { recursive: true });
    await writeFile(join(root.path, "d/sub/f"), "1");
    await writeFile(join(root.path, "d/g"), "2");
    await using watch = await startSync(root.path);
    await rename(join(root.path, "d"), join(root.path, "e"));
    const moved = await watch.ask();
    expect(moved.gone).toEqual(["d"]);
    expect(pathsOf(moved)).toEqual(["e", "e/g", "e/sub", "e/sub/f"]);
    // Away, changed there, and back: what is missing now is known to be gone only because the whole was.
    await rename(join(root.path, "e"), join(outside.path, "e"));
    await unlink(join(outside.path, "e/g"));
    await rename(join(outside.path, "e"), join(root.path, "e"));
    const back = await watch.ask();
    expect(back.gone).toEqual(["e"]);
    expect(pathsOf(back)).toEqual(["e", "e/sub", "e/sub/f"]);
    await writeFile(join(root.path, "e/sub/later"), "");
    expect(pathsOf(await watch.ask())).toEqual(["e/sub/later"]);
    await rm(join(root.path, "e"), { recursive: true });
    expect((await watch.ask()).gone).toContain("e");
  });

  it("sees what was written through memory once the file is let go", async () => {
    await using root = await freshDirectory();
    await writeFile(join(root.path, "f"), "before");
    await using watch = await startSync(root.path);
    const script =
      "import mmap,sys\nf=open(sys.argv[1],'r+b')\nm=mmap.mmap(f.fileno(),0)\nf.close()\nm[0:6]=b'behind'\nm.close()";
    const python = spawn("python3", ["-c", script, join(root.path, "f")]);
    await once(python, "close");
    expect((await watch.ask()).contents).toEqual({ f: "behind" });
  });

  it("leaves large contents, pipes and links to be asked for", async () => {
    await using root = await freshDirectory();
    await using watch = await startSync(root.path);
    await writeFile(join(root.path, "large"), Buffer.alloc(16_385));
    await writeFile(join(root.path, "small"), Buffer.alloc(16_384, "s"));
    await writeFile(join(root.path, "target"), "t");
    await symlink("target", join(root.path, "link"));
    await once(spawn("mkfifo", [join(root.path, "pipe")]), "close");
    const answer = await watch.ask();
    expect(pathsOf(answer)).toEqual(["large", "link", "pipe", "small", "target"]);
    expect(Object.keys(answer.contents).sort()).toEqual(["small", "target"]);
    for (let i = 0; i < 20; i++) await writeFile(join(root.path, `m${i}`), Buffer.alloc(16_384));
    const many = await watch.ask();
    expect(many.records).toHaveLength(20);
    expect(Object.keys(many.contents)).toHaveLength(8);
  });

  it("says to look at everything when events were lost or there are too many paths, then goes on", async () => {
    await using root = await freshDirectory();
    const names = [join(root.path, "a"), join(root.path, "b")];
    for (const name of names) await writeFile(name, "");
    await using watch = await startSync(root.path);
    watch.child.kill("SIGSTOP");
    await until(async () => (await readFile(`/proc/${watch.child.pid}/stat`, "utf8")).includes(") T "));
    const limit = Number(await readFile("/proc/sys/fs/inotify/max_queued_events", "utf8"));
    for (let i = 0; i < limit / 2 + 10; i++) for (const name of names) utimesSync(name, i, i);
    await mkdir(join(root.path, "new/deeper"), { recursive: true });
    watch.child.kill("SIGCONT");
    expect(await watch.ask()).toMatchObject({ everything: true, gone: [] });
    await writeFile(join(root.path, "new/deeper/f"), "x");
    expect(await watch.ask()).toMatchObject({ everything: false, contents: { "new/deeper/f": "x" } });
    const make = "i=0; while [ $i -lt 33000 ]; do : > $i; i=$((i+1)); done";
    await once(spawn("sh", ["-c", make], { cwd: join(root.path, "new") }), "close");
    expect((await watch.ask()).everything).toBe(true);
    expect(await watch.ask()).toEqual(NOTHING);
  });

  it("shows what a directory holds once it can be read again", async () => {
    await using root = await freshDirectory();
    const options = await plainUser(root.path);
    await mkdir(join(root.path, "t/d"), { recursive: true });
    await chmod(join(root.path, "t"), 0o777);
    await writeFile(join(root.path, "t/d/f"), "in");
    await chmod(join(root.path, "t/d"), 0o000);
    await using watch = await startSync(
      join(root.path, "t"),
      startTool(["watch", join(root.path, "t"), "", "sync"], options),
    );
    await chmod(join(root.path, "t/d"), 0o755);
    expect((await watch.ask()).contents).toEqual({ "d/f": "in" });
    await writeFile(join(root.path, "t/d/f"), "on");
    expect((await watch.ask()).contents).toEqual({ "d/f": "on" });
  });

  it("tells a file under the name it was written through", async () => {
    await using root = await freshDirectory();
    await mkdir(join(root.path, "d"));
    await writeFile(join(root.path, "a"), "1");
    await link(join(root.path, "a"), join(root.path, "d/b"));
    await using watch = await startSync(root.path);
    await writeFile(join(root.path, "d/b"), "2");
    expect(pathsOf(await watch.ask())).toEqual(["d/b"]);
  });

  it("ends with its input, with the watched directory, and refuses another word", async () => {
    await using root = await freshDirectory();
    await using watch = await startSync(root.path);
    watch.child.stdin.end();
    expect((await watch.closed)[0]).toBe(0);
    await mkdir(join(root.path, "d"));
    await using other = await startSync(join(root.path, "d"));
    await rm(join(root.path, "d"), { recursive: true });
    expect((await other.closed)[0]).toBe(0);
    expect((await runTool(["watch", root.path, "", "often"])).stderr).toMatch(/^EINVAL /);
  });
});
