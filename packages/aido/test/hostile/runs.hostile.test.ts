import { lstat, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { RunSummary } from "@aido/sdk/protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fileOf, specOf } from "../run/run-harness.ts";
import { marked } from "./canaries.ts";
import { DRIVERS, Range } from "./range.ts";

const MARK = `AIDO_HOSTILE_RUN_${process.pid}`;

const LINKS = (canary: string) => `
import os, socket, stat
os.chdir("/outputs")
canary = ${JSON.stringify(canary)}
for name, to in (("stdout.log", canary), ("stderr.log", "/etc/shadow"), ("summary.json", "../" * 40 + canary[1:]),
                 ("absolute", canary), ("climbing", "../../../run.json"), ("directory", os.path.dirname(canary)), ("run", "../../run")):
    os.symlink(to, name)
for source in ("/inputs/given", "/task/task.py", "/etc/passwd", "/work/made"):
    open("/work/made", "w").write("x")
    try: os.link(source, "hard" + source.replace("/", "-")); print("linked", source)
    except OSError: pass
os.mkfifo("pipe")
s = socket.socket(socket.AF_UNIX); s.bind("socket")
for kind in (stat.S_IFCHR, stat.S_IFBLK):
    try: os.mknod("device%d" % kind, kind | 0o666, os.makedev(1, 1))
    except OSError: pass
open(b"\\xff\\xfe", "w").write("odd")
open("\\x1b[2Jclear", "w").write("odd")
open("new\\nline", "w").write("odd")
open("huge", "w").truncate(1 << 40)
open("set", "w").write("x"); os.chmod("set", 0o6777)
open("real", "w").write("real")
os.chmod("/outputs", 0)
print("made")
`;
const RENAME_LOG = `
import os
print("first", flush=True)
for name in ("stdout.log", "stderr.log", "summary.json", "steps"):
    os.mkdir("/outputs/" + name)
os.rename("/outputs/stdout.log", "/outputs/moved")
os.symlink("/outputs/moved", "/outputs/stdout.log")
print("second", flush=True)
`;
const MANY = `
import os
os.chdir("/outputs")
for i in range(20000): os.close(os.open("f%06d" % i, os.O_CREAT | os.O_WRONLY))
print("made")
`;
/** Goes on after the task has ended, while its outputs are copied. */
const SWAP = (canary: string) => `
import os, time
os.chdir("/outputs")
os.mkdir("swap")
for i in range(300): open("swap/f%d" % i, "w").write("inside")
os.symlink(${JSON.stringify(canary)}, "link")
os.symlink(os.path.dirname(${JSON.stringify(canary)}), "links")
if os.fork() == 0:
    os.setsid()
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2): os.dup2(null, fd)
    end = time.time() + 60
    while time.time() < end:
        try:
            os.rename("swap", "away"); os.rename("links", "swap"); os.rename("swap", "links"); os.rename("away", "swap")
            os.rename("swap/f7", "swap/f8"); os.symlink(${JSON.stringify(canary)}, "swap/f7"); os.remove("swap/f7"); os.rename("swap/f8", "swap/f7")
        except OSError: pass
    os._exit(0)
print("swapping")
`;

for (const driver of DRIVERS) {
  describe(`hostile runs on ${driver}`, () => {
    let range: Range;
    beforeAll(async () => {
      range = await Range.open(driver);
    });
    afterAll(async () => {
      await range[Symbol.asyncDispose]();
    });

    /** Runs a task to its end, lets `look` see what it left, and destroys it: nothing may stay, nothing of the host may have changed. */
    const run = async (
      script: string,
      look: (left: { outputs: string; summary: RunSummary }) => Promise<void>,
      autoDestroy = true,
    ) => {
      const { runs, sandboxes } = range.aido;
      const { id } = await runs.up({
        spec: specOf({ runtime: range.image, env: { [MARK]: "1" } }),
        specText: "name: hostile\n",
        inputs: [fileOf("given", "given")],
        autoDestroy,
      });
      const outputs = join(range.root, "data", "sandboxes", id, "outputs");
      try {
        await runs.start({ sandbox: id, task: fileOf("task.py", script) });
        const summary = await runs.wait(id, AbortSignal.timeout(60_000));
        expect(await readFile(join(outputs, "stderr.log"), "utf8")).toBe("");
        await look({ outputs, summary });
      } finally {
        await sandboxes.destroy(id);
      }
      expect(marked(MARK)).toEqual([]);
      expect(await readdir(join(range.root, "data", "sandboxes"))).toEqual([]);
      await range.canaries.check();
    };

    test("links, devices, pipes, forged logs and odd names in the outputs give nothing of the host", async () => {
      await run(LINKS(range.canaries.file), async ({ outputs, summary }) => {
        expect(summary).toMatchObject({ status: "completed", exitCode: 0 });
        expect(await readFile(join(outputs, "stdout.log"), "utf8")).toBe("made\n");
        expect(JSON.parse(await readFile(join(outputs, "summary.json"), "utf8"))).toEqual(summary);
        const entries = await readdir(Buffer.from(outputs), { encoding: "buffer" });
        for (const name of entries) {
          const path = Buffer.concat([Buffer.from(`${outputs}/`), name]);
          const info = await lstat(path);
          expect(info.isFile()).toBe(true);
          expect(info.mode & 0o7000).toBe(0);
          if (info.size < 1024 * 1024)
            expect((await readFile(path)).includes(range.canaries.secret)).toBe(false);
        }
        expect(summary.outputFiles).toContain("real");
      });
    });

    test("who replaces the log by a link or a directory of its own still has its output recorded", async () => {
      await run(RENAME_LOG, async ({ outputs }) => {
        expect(await readFile(join(outputs, "stdout.log"), "utf8")).toBe("first\nsecond\n");
        expect((await lstat(join(outputs, "summary.json"))).isFile()).toBe(true);
      });
    });

    test("20000 output files are captured up to the limit, and all are removed", async () => {
      await run(MANY, async ({ outputs, summary }) => {
        expect(summary.status).toBe("completed");
        expect((await readdir(outputs)).length).toBeLessThanOrEqual(10_010);
      });
    });

    test("outputs that change while they are captured give nothing of the host", async () => {
      await run(
        SWAP(range.canaries.file),
        async ({ outputs, summary }) => {
          expect(summary.status).toBe("completed");
          for (const entry of await readdir(outputs, { recursive: true, withFileTypes: true })) {
            expect(entry.isSymbolicLink()).toBe(false);
            if (!entry.isFile()) continue;
            const content = await readFile(join(entry.parentPath, entry.name));
            expect(content.includes(range.canaries.secret)).toBe(false);
          }
        },
        false,
      );
    });
  });
}
