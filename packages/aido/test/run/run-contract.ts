import { execFile } from "node:child_process";
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { SqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { type DriverBackend, until } from "../contract/driver-backend.ts";
import { fileOf, makeRunHost, type RunHost, stepOf } from "./run-harness.ts";

export interface RunSuite {
  make(): Promise<DriverBackend>;
  /** Has bash and python3. */
  image: string;
}

interface RealHost extends RunHost, AsyncDisposable {
  another(): Promise<RunHost>;
  containers(): Promise<number>;
}

async function makeHost(suite: RunSuite): Promise<RealHost> {
  const backend = await suite.make();
  const directory = join(backend.directory, "data");
  const hosts: RunHost[] = [];
  const another = async () => {
    await mkdir(directory, { recursive: true });
    const store = new SqliteStore(join(directory, "aido.db"));
    const host = makeRunHost({ driver: await backend.reopen(), store, directory, image: suite.image });
    hosts.push(host);
    return host;
  };
  return {
    ...(await another()),
    another,
    containers: async () => (await backend.driver.list()).length,
    [Symbol.asyncDispose]: async () => {
      for (const host of hosts) await host.close();
      for (const host of hosts) await host.store.close();
      await backend[Symbol.asyncDispose]();
    },
  };
}

/** What a run promises on a real backend. */
export function runContract(name: string, suite: RunSuite): void {
  describe(`runs on ${name}`, () => {
    test("S0-41 S0-47 S0-48 S0-49 S0-50 a python task prints, warns, writes a file and ends with its code", async () => {
      await using host = await makeHost(suite);
      const { id } = await host.up({ outputs: ["report.md", "more.txt"] });
      const script = [
        "import sys, os",
        "print('hello from', os.getcwd())",
        "print('careful', file=sys.stderr)",
        "open('/outputs/report.md', 'w').write('# done')",
        "open('left.txt', 'w').write('here')",
        "sys.exit(3)",
      ].join("\n");
      const summary = await host.run({ sandbox: id, task: fileOf("task.py", script) });
      expect(summary).toMatchObject({
        status: "failed",
        exitCode: 3,
        outputFiles: ["report.md"],
        missingOutputs: ["more.txt"],
      });
      expect(await host.read(id, "outputs/stdout.log")).toBe("hello from /work\n");
      expect(await host.read(id, "outputs/stderr.log")).toBe("careful\n");
      expect(await host.read(id, "outputs/report.md")).toBe("# done");
      expect(await host.read(id, "work/left.txt")).toBe("here");
      expect(await host.containers()).toBe(0);
    });

    test("S0-24 S0-42 S0-44 S0-79 inputs and task can be read and never be changed", async () => {
      await using host = await makeHost(suite);
      const { id } = await host.up({}, { inputs: [fileOf("data/in.txt", "original\n")] });
      const script = [
        "cat /inputs/data/in.txt",
        "echo x > /inputs/data/in.txt && echo WROTE",
        "echo x > /inputs/new && echo WROTE",
        "rm -f /inputs/data/in.txt && echo REMOVED",
        "chmod 777 /inputs/data && echo CHANGED",
        "echo x >> /task/task.sh && echo WROTE",
        "mount -o remount,rw /inputs 2>/dev/null && echo REMOUNTED",
        "true",
      ].join("\n");
      const summary = await host.run({ sandbox: id, task: fileOf("task.sh", script) });
      expect(summary.status).toBe("completed");
      expect(await host.read(id, "outputs/stdout.log")).toBe("original\n");
      expect(await host.read(id, "inputs/data/in.txt")).toBe("original\n");
      expect(await readdir(join(host.dataDir.sandbox(id), "inputs"))).toEqual(["data"]);
    });

    test("S0-26 S0-81 a hostile /outputs gives nothing of the host: links, pipes, forged logs, deep trees", async () => {
      await using host = await makeHost(suite);
      const { id } = await host.up();
      const script = [
        "cd /outputs",
        "ln -s /etc/shadow shadow",
        "ln -s ../../../../../../../../etc/passwd passwd",
        "ln -s / root",
        "ln -s ../inputs dir",
        "mkfifo pipe",
        "echo forged > stdout.log",
        "echo '{}' > summary.json",
        "mkdir steps && echo forged > steps/1-a.stdout.log",
        "echo real > real.txt && chmod 4777 real.txt && ln real.txt again.txt",
        "echo hidden > locked && chmod 000 locked",
        "d=deep; for i in $(seq 1 60); do d=$d/d; done; mkdir -p $d && echo x > $d/f",
        "echo printed",
      ].join("\n");
      const summary = await host.run({ sandbox: id, task: fileOf("task.sh", script) });
      expect(summary.status).toBe("completed");
      expect(summary.outputFiles).toEqual(
        expect.arrayContaining([
          "again.txt",
          "real.txt",
          "task-stdout.log",
          "task-steps/1-a.stdout.log",
          "task-summary.json",
        ]),
      );
      expect(await host.read(id, "outputs/stdout.log")).toBe("printed\n");
      expect(JSON.parse(await host.read(id, "outputs/summary.json"))).toEqual(summary);
      const entries = await readdir(join(host.dataDir.sandbox(id), "outputs"), {
        withFileTypes: true,
        recursive: true,
      });
      expect(entries.filter((entry) => !entry.isFile() && !entry.isDirectory())).toEqual([]);
      const captured = (await host.events(id)).find((entry) => entry.event === "outputs.captured");
      const skipped = captured?.detail?.["skipped"] as readonly { path: string; reason: string }[];
      expect(skipped).toEqual(
        expect.arrayContaining([
          { path: "dir", reason: "symlink" },
          { path: "passwd", reason: "symlink" },
          { path: "pipe", reason: "pipe" },
          { path: "root", reason: "symlink" },
          { path: "shadow", reason: "symlink" },
        ]),
      );
      await host.sandboxes.destroy(id);
      expect(await readdir(host.dataDir.sandboxes)).toEqual([]);
    });

    test("S0-77 S0-78 S0-87 a task that ignores every signal is ended at the ttl", async () => {
      await using host = await makeHost(suite);
      const { id } = await host.up({ ttlMs: 2_000 });
      const script = "trap '' TERM INT HUP\necho begun\n(setsid sleep 600 &)\nwhile :; do sleep 1; done\n";
      const summary = await host.run({ sandbox: id, task: fileOf("task.sh", script) });
      expect(summary).toMatchObject({ status: "timeout", exitCode: 124 });
      expect(await host.read(id, "outputs/stdout.log")).toBe("begun\n");
      expect(await host.containers()).toBe(0);
    });

    test("S0-87 aido is gone: the sandbox ends by itself, the next process says timeout and cleans up", async () => {
      await using host = await makeHost(suite);
      const first = await host.another();
      const { id } = await first.up({ ttlMs: 2_000 });
      await first.runs.start({ sandbox: id, task: fileOf("task.sh", "echo begun\nsleep 600\n") });
      await until(
        "the output is there",
        async () => (await host.read(id, "outputs/stdout.log")) === "begun\n",
      );
      await first.die();
      await host.sandboxes.reconcile();
      await until("the sandbox has ended", async () => (await host.sandboxes.get(id)).state !== "running");
      await host.runs.recover();
      expect(await host.runs.summary(id)).toMatchObject({ status: "timeout", exitCode: 124 });
      expect(await host.containers()).toBe(0);
      expect((await host.events(id)).map((entry) => entry.event)).toEqual(
        expect.arrayContaining(["run.recovered", "run.timeout"]),
      );
    });

    test("aido is gone and the task ends: the next process has all of its output and its files", async () => {
      await using host = await makeHost(suite);
      const first = await host.another();
      const { id } = await first.up();
      const script = "echo before\nsleep 1\nseq 1 20000\necho x > /outputs/result\nexit 5\n";
      await first.runs.start({ sandbox: id, task: fileOf("task.sh", script) });
      await first.die();
      const summary = await host.runs.wait(id);
      expect(summary).toMatchObject({ status: "failed", exitCode: 5, outputFiles: ["result"] });
      const { stdout } = await promisify(execFile)("seq", ["1", "20000"]);
      expect(await host.read(id, "outputs/stdout.log")).toBe(`before\n${stdout}`);
    });

    test("S0-83 without auto-destroy the sandbox stays and the next task finds what the first left in /tmp", async () => {
      await using host = await makeHost(suite);
      const { id } = await host.up({ ttlMs: 1_000 }, { autoDestroy: false });
      await host.run({ sandbox: id, task: fileOf("a.sh", "echo kept > /tmp/state\nsleep 1.5\n") });
      expect((await host.sandboxes.get(id)).state).toBe("running");
      const summary = await host.run({
        sandbox: id,
        task: fileOf("b.sh", "cat /tmp/state\n"),
        autoDestroy: true,
      });
      expect(summary.status).toBe("completed");
      expect(await host.read(id, "outputs/stdout.log")).toBe("kept\n");
      expect(await host.containers()).toBe(0);
    });

    test("S0-92 a pipeline hands its files on, and stops at the step that fails", async () => {
      await using host = await makeHost(suite);
      const steps = [stepOf("make", "make.sh"), stepOf("use", "use.py"), stepOf("never", "make.sh")];
      const tasks = [
        fileOf("make.sh", "echo 20 > number\necho made\n"),
        fileOf(
          "use.py",
          "n = int(open('number').read())\nprint(n + 22)\nopen('/outputs/n', 'w').write(str(n))\nexit(9)\n",
        ),
      ];
      const { id } = await host.up({ steps }, { tasks });
      const summary = await host.run({ sandbox: id });
      expect(summary).toMatchObject({ status: "failed", exitCode: 9, outputFiles: ["n"] });
      expect(summary.steps?.map((step) => step.status)).toEqual(["completed", "failed", "skipped"]);
      expect(await host.read(id, "outputs/stdout.log")).toBe("made\n42\n");
      expect(await host.read(id, "outputs/steps/2-use.stdout.log")).toBe("42\n");
    });

    test("a second run in the same sandbox works on what the first left", async () => {
      await using host = await makeHost(suite);
      const { id } = await host.up();
      await host.run({ sandbox: id, task: fileOf("a.sh", "echo 1 > /work/n; echo 1 > /outputs/n") });
      const summary = await host.run({
        sandbox: id,
        task: fileOf("b.sh", "cat /work/n; echo 2 > /work/n; echo 2 > /outputs/n"),
      });
      expect(summary).toMatchObject({ status: "completed", outputFiles: ["n"] });
      expect(await host.read(id, "outputs/n")).toBe("2\n");
    });

    test("the evidence names the files that a task has changed: at its end, or when what was kept is stopped or destroyed", async () => {
      await using host = await makeHost(suite);
      const told = async (id: string) =>
        (await host.events(id)).filter(({ event }) => event === "files.changed").map(({ detail }) => detail);
      const passing = await host.up();
      const first = "echo 1 > old; mkdir d; echo x > 'd/a b'; ln -s old link; cp old $'\\xff'";
      await host.run({ sandbox: passing.id, task: fileOf("a.sh", first) });
      const few = { files: ['"\\377"', "d/a b", "link", "old"], filesTotal: 4 };
      expect(await told(passing.id)).toEqual([few]);
      const second = "rm -r *; for i in $(seq 150); do : > $i; done";
      await host.run({ sandbox: passing.id, task: fileOf("b.sh", second) });
      expect(await told(passing.id)).toMatchObject([few, { filesTotal: 150 }]);
      expect((await told(passing.id))[1]?.["files"]).toHaveLength(100);

      const kept = await host.up({}, { autoDestroy: false });
      await host.run({ sandbox: kept.id, task: fileOf("c.sh", "echo 1 > kept") });
      const one = { files: ["kept"], filesTotal: 1 };
      expect(await told(kept.id)).toEqual([one]);
      await host.execs.start(kept.id, { id: "more", argv: ["touch", "/work/more"] });
      await host.execs.wait(kept.id, "more");
      await host.sandboxes.stop(kept.id);
      expect(await told(kept.id)).toEqual([one, { files: ["kept", "more"], filesTotal: 2 }]);
      await host.sandboxes.start(kept.id);
      await host.execs.start(kept.id, { id: "last", argv: ["touch", "/work/more"] });
      await host.execs.wait(kept.id, "last");
      await host.sandboxes.destroy(kept.id);
      expect((await told(kept.id)).at(-1)).toMatchObject({ files: expect.arrayContaining(["more"]) });
    });

    test("256 MiB of output are kept once and whole", async () => {
      await using host = await makeHost(suite);
      const { id } = await host.up();
      const script = "import os\nfor i in range(256): os.write(1, bytes([65 + i % 26]) * 1048576)\n";
      const summary = await host.run({ sandbox: id, task: fileOf("flood.py", script) });
      expect(summary.status).toBe("completed");
      const { stdout } = await promisify(execFile)("du", [
        "-s",
        "--apparent-size",
        "-B1",
        host.dataDir.sandbox(id),
      ]);
      expect(Number(stdout.split("\t")[0])).toBeGreaterThanOrEqual(256 * 1048576);
      expect(Number(stdout.split("\t")[0])).toBeLessThan(260 * 1048576);
    });
  });
}
