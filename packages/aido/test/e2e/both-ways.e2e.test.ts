import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AidoServer } from "./aido-server.ts";
import { Project } from "./project.ts";
import { onTerminal } from "./terminal.ts";

const servers = new Map<string, AidoServer>();
const server = (driver = "local"): AidoServer => {
  const running = servers.get(driver);
  if (running === undefined) throw new Error(`no server with the driver ${driver}`);
  return running;
};
beforeAll(async () => {
  for (const driver of ["local", "docker"]) servers.set(driver, await AidoServer.start(driver));
});
afterAll(async () => {
  for (const running of servers.values()) await running[Symbol.asyncDispose]();
});

type Files = Readonly<Record<string, string>>;
interface Way {
  way: string;
  driver: string;
  make: (files?: Files) => Promise<Project>;
  /** An image for sandboxes, and one that has Python and bash. */
  image: string;
  runtime: string;
}
const IMAGES = {
  local: { image: "host", runtime: "host" },
  docker: { image: "aido-test:busybox", runtime: "aido-test:python" },
};
const PRIVILEGED: [string[], number, string][] = [
  [["create", "--image", "host", "--dangerous-allow-privileged"], 9, "UNSUPPORTED"],
  [["image", "build", "--base", "host", "--pip", "x"], 9, "UNSUPPORTED"],
];
const WAYS: Way[] = (["local", "docker"] as const).flatMap((driver) => [
  { way: "in this process", driver, make: (files) => Project.make(driver, files), ...IMAGES[driver] },
  {
    way: "over a server",
    driver,
    make: (files) => Project.on(server(driver).url, files, driver),
    ...IMAGES[driver],
  },
]);

interface Entry {
  execId: string;
  files: string[];
}

describe.each(WAYS)("S3-2 every command works $way, on $driver:", ({ way, driver, make, image, runtime }) => {
  const run = driver === "docker" ? ["run", "--image", runtime] : ["run"];

  test("S3-83 create --workspace, workspace list, rm", async () => {
    await using project = await make();
    const workspace = `files-${randomBytes(4).toString("hex")}`;
    const first = await project.create("--workspace", workspace);
    await project.aido(["exec", first, "--", "sh", "-c", "echo kept > file"]);
    const taken = await project.aido(["create", "--image", image, "--workspace", workspace]);
    expect(taken).toMatchObject({ code: 5, stderr: expect.stringContaining(`aido rm ${first}`) });
    expect(await project.aido(["workspace", "rm", workspace])).toMatchObject({ code: 5 });
    expect(await project.aido(["rm", first])).toMatchObject({ code: 0 });
    const next = await project.create("--workspace", workspace);
    expect(await project.aido(["exec", next, "--", "cat", "file"])).toMatchObject({ stdout: "kept\n" });
    const listed = await project.aido(["workspace", "list"]);
    expect(listed.stdout).toMatch(new RegExp(`^${workspace} +${next} `, "m"));
    await project.aido(["rm", next]);
    expect(await project.aido(["workspace", "rm", workspace])).toMatchObject({ code: 0 });
    expect((await project.aido(["workspace", "list"])).stdout).not.toContain(workspace);
  });

  test("workflow create, list, trigger, runs, cancel", async () => {
    await using project = await make();
    const id = await project.create("--name", `flow-${randomBytes(4).toString("hex")}`);
    const workflow = (...argv: string[]) => project.aido(["workflow", ...argv]);
    const created = await workflow("create", "n", "--command", "echo in $0", "-s", id, "--json");
    const number = String(JSON.parse(created.stdout).workflowId);
    expect(await workflow("trigger", number)).toMatchObject({ code: 0, stdout: "in sh\n", stderr: "" });
    const own = await workflow("create", "own", "--command", "exit 4", "--set", `image=${image}`, "--json");
    const failed = await workflow("trigger", String(JSON.parse(own.stdout).workflowId));
    expect(failed).toMatchObject({ code: 1, stdout: "step 1 ended with exit code 4\n" });
    expect((await workflow("runs", number)).stdout).toMatch(/run-\S+ +manual +done/);
    expect(await workflow("cancel", number)).toMatchObject({ stdout: `Workflow ${number} is cancelled\n` });
    const listed = JSON.parse((await workflow("list", "--json")).stdout) as { id: number; active: boolean }[];
    expect(listed.find((one) => one.id === Number(number))).toMatchObject({ active: false });
    const bad = await workflow("create", "n", "--command", "ls", "--cron", "* * * * *");
    expect(bad.code).not.toBe(0);
    expect(bad.stderr).toContain("has 5 fields, not six");
  });

  test("create, inspect, ls, ttl, stats, rm", async () => {
    await using project = await make();
    const id = await project.create(
      "--name",
      "web",
      "--label",
      "team=a",
      "--memory",
      "256m",
      "--cpus",
      "0.5",
    );
    expect(await project.json(["inspect", "web"])).toMatchObject({
      id,
      name: "web",
      state: "running",
      network: "none",
      labels: expect.objectContaining({ team: "a" }),
      limits: expect.objectContaining({ memoryBytes: 256 << 20, cpus: 0.5 }),
      execs: [],
    });
    expect((await project.ok(["ls", "--quiet", "--label", "team=a"])).stdout).toBe(`${id}\n`);
    expect((await project.ok(["ls", "--quiet", "--label", "team=b"])).stdout).toBe("");
    expect((await project.ok(["ttl", "web", "1h"])).stdout).toMatch(/(1h|59m)/);
    expect(await project.json(["stats", "web"])).toMatchObject([{ sandboxId: id, pids: expect.any(Number) }]);
    expect((await project.ok(["rm", "web"])).stdout).toBe(`Destroyed ${id}\n`);
    expect(await project.json(["ls"])).toEqual([]);
    expect(await project.json<object[]>(["ls", "--all"])).toContainEqual(
      expect.objectContaining({ id, state: "deleted" }),
    );
  });

  test("exec passes streams and exit codes through, and standard input byte for byte", async () => {
    await using project = await make();
    const id = await project.create();
    const both = await project.aido(["exec", id, "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    expect(both).toMatchObject({ code: 7, stdout: "out\n", stderr: "err\n" });
    expect(await project.aido(["exec", id, "--", "sh", "-c", "kill -9 $$"])).toMatchObject({ code: 137 });
    expect(await project.aido(["exec", "--timeout", "300ms", id, "sleep", "60"])).toMatchObject({
      code: 124,
    });
    expect(await project.aido(["exec", id, "no-such-program"])).toMatchObject({ code: 125 });
    const input = randomBytes(700_000);
    expect((await project.ok(["exec", "-i", id, "cat"], { stdin: input })).bytes.equals(input)).toBe(true);
    const env = await project.ok(["exec", "-e", "WHO=me", "--cwd", "/tmp", id, "sh", "-c", "echo $WHO; pwd"]);
    expect(env.stdout).toBe("me\n/tmp\n");
    const lines = (await project.ok(["exec", "--json", id, "echo", "x"])).stdout.trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { type: "output", stream: "stdout", text: "x\n" },
      { type: "end", exitCode: 0, status: "exited" },
    ]);
  });

  test("a signal to aido reaches the command", async () => {
    await using project = await make();
    const id = await project.create();
    const script = "trap 'echo caught; exit 9' TERM; echo ready; while :; do sleep 0.05; done";
    await using running = project.start(["exec", id, "--", "sh", "-c", script]);
    await running.until("ready");
    running.child.kill("SIGTERM");
    expect(await running.end()).toMatchObject({ code: 9, stdout: "ready\ncaught\n" });
  });

  test("a detached exec is followed to its end and read again by its id", async () => {
    await using project = await make();
    const id = await project.create();
    const script = "echo one; while [ ! -e go ]; do sleep 0.05; done; echo two; exit 5";
    const exec = (await project.ok(["exec", "--detach", id, "--", "sh", "-c", script])).stdout.trim();
    expect(exec).toMatch(/^exec_([0-9a-f]{8}){1,2}$/);
    await using following = project.start(["logs", id, "--exec", exec, "--follow"]);
    await following.until("one");
    expect((await project.ok(["logs", id, "--exec", exec])).stdout).toBe("one\n");
    await project.ok(["exec", id, "touch", "go"]);
    expect(await following.end()).toMatchObject({ code: 0, stdout: "one\ntwo\n" });
    const { execs } = await project.json<{ execs: object[] }>(["inspect", id]);
    expect(execs).toContainEqual(expect.objectContaining({ id: exec, exitCode: 5, status: "exited" }));
  });

  test("a shell is a real terminal: size, resize, Ctrl-C, exit code", async () => {
    await using project = await make();
    const id = await project.create();
    const outcome = await onTerminal(
      project,
      ["shell", id, "--shell", "/bin/sh"],
      [
        { send: "stty size; test -t 0 && echo is-$((1))-tty\n" },
        { expect: "24 80" },
        { expect: "is-1-tty" },
        { resize: [40, 100] },
        { send: "sleep 0.3; stty size\n" },
        { expect: "40 100" },
        { send: "sh -c 'echo sleeps-$((2+3)); exec sleep 60'\n" },
        { expect: "sleeps-5" },
        { send: "\u0003" },
        { send: "echo after-$((1+1))\n" },
        { expect: "after-2" },
        { send: "exit 6\n" },
      ],
    );
    expect(outcome).toMatchObject({ failure: null, code: 6, restored: true });
  });

  test("cp takes files and directories in and out, byte for byte", async () => {
    await using project = await make({ "tree/a.txt": "a\n", "tree/sub/b.txt": "b\n" });
    const big = randomBytes(3_000_000);
    await writeFile(project.path("big.bin"), big);
    const id = await project.create();
    await project.ok(["cp", "big.bin", `${id}:big.bin`]);
    await project.ok(["cp", `${id}:big.bin`, "back.bin"]);
    expect((await readFile(project.path("back.bin"))).equals(big)).toBe(true);
    await project.ok(["cp", "tree", `${id}:tree`]);
    expect((await project.ok(["exec", id, "cat", "tree/sub/b.txt"])).stdout).toBe("b\n");
    await project.ok(["cp", `${id}:tree`, "copied"]);
    expect(await project.read("copied", "a.txt")).toBe("a\n");
    expect(await project.aido(["cp", `${id}:none.txt`, "x"])).toMatchObject({ code: 4 });
    expect(existsSync(project.path("x"))).toBe(false);
  });

  test("run passes a task's output and exit code through and its outputs can be had", async () => {
    await using project = await make({
      "hello.py":
        "import sys\nprint('hello')\nprint('warn', file=sys.stderr)\nopen('/outputs/report.txt', 'w').write('42\\n')\nsys.exit(3)\n",
    });
    const outcome = await project.aido([...run, "hello.py"]);
    expect(outcome).toMatchObject({ code: 3, stdout: "hello\n" });
    expect(outcome.stderr).toContain("warn\n");
    expect(outcome.stderr).toContain("report.txt");
    expect(await project.aido(["logs"])).toMatchObject({ code: 0, stdout: "hello\n", stderr: "warn\n" });
    expect((await project.ok(["outputs"])).stdout).toBe("report.txt\n");
    await project.ok(["outputs", "--to", "results"]);
    expect(await project.read("results", "report.txt")).toBe("42\n");
    const summary = JSON.parse((await project.aido([...run, "hello.py", "--json"])).stdout);
    expect(summary).toMatchObject({ status: "failed", exitCode: 3, outputFiles: ["report.txt"] });
  });

  test("a spec's sandbox gets its inputs, runs its steps in order, and is found by its name", async () => {
    await using project = await make({
      "sandbox.yaml": `name: demo\nruntime: ${driver === "docker" ? runtime : "bash"}\nttl: 5m\ninputs:\n  - data/*.txt\noutputs:\n  - sum.txt\nenv:\n  WHO: me\nsteps:\n  - name: first\n    task: one.sh\n  - name: second\n    task: two.sh\n`,
      "data/in.txt": "20\n",
      "data/more.txt": "22\n",
      "one.sh": "echo one $WHO; cat /inputs/data/*.txt > /work/all; exit 0\n",
      "two.sh": "echo two >&2; echo $(( $(paste -sd+ /work/all) )) > /outputs/sum.txt\n",
    });
    const { id } = await project.json<{ id: string }>(["sandbox", "up"]);
    const outcome = await project.aido(["run"]);
    expect(outcome).toMatchObject({ code: 0 });
    expect(outcome.stdout).toContain("one me\n");
    expect(outcome.stderr).toContain("two\n");
    await project.ok(["outputs", "demo", "--to", "."]);
    expect(await project.read("sum.txt")).toBe("42\n");
    const lines = (await project.ok(["logs", id, "--json"])).stdout.trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line).step)).toEqual(["first", "second"]);
  });

  test("an interrupted run ends its task and says so with its exit code", async () => {
    await using project = await make({ "t.sh": "echo ready; sleep 60; echo never\n" });
    await using running = project.start([...run, "t.sh"]);
    await running.until("ready");
    running.child.kill("SIGINT");
    expect(await running.end()).toMatchObject({ code: 130, stdout: "ready\n" });
    const [sandbox] = await project.json<{ state: string }[]>(["ls"]);
    expect(sandbox?.state).not.toBe("running");
  });

  test("history, diff and rollback", async () => {
    await using project = await make();
    const id = await project.create("--history");
    await project.ok(["exec", id, "sh", "-c", "echo one > file"]);
    await project.ok(["exec", id, "sh", "-c", "echo two > file; echo x > other"]);
    const entries = await project.json<Entry[]>(["history", id]);
    expect(entries.slice(0, 2).map(({ files }) => files)).toEqual([["file", "other"], ["file"]]);
    expect((await project.ok(["diff", id])).stdout).toMatch(/-one\n\+two/);
    const rolled = await project.json<Entry>(["rollback", id, entries[1]?.execId ?? ""]);
    expect(rolled).toMatchObject({ commitId: expect.stringMatching(/^[0-9a-f]{40}$/) });
    expect((await project.ok(["exec", id, "cat", "file"])).stdout).toBe("one\n");
    expect(await project.aido(["exec", id, "cat", "other"])).toMatchObject({ code: 1 });
  });

  test("evidence is there during and after the life of a sandbox, and holds", async () => {
    await using project = await make();
    const id = await project.create();
    await project.ok(["exec", id, "true"]);
    await project.ok(["rm", id]);
    const events = (await project.ok(["evidence", "show", id, "--json"])).stdout.trimEnd().split("\n");
    const names = events.map((line) => JSON.parse(line).event);
    expect(names).toEqual(expect.arrayContaining(["sandbox.created", "exec.started", "sandbox.destroyed"]));
    expect(await project.json(["evidence", "verify", id])).toMatchObject([{ sandboxId: id, ok: true }]);
  });

  test("stop keeps files, start brings them back", async () => {
    await using project = await make();
    const id = await project.create("--name", "web");
    await project.ok(["exec", "web", "sh", "-c", "echo kept > file"]);
    expect((await project.ok(["stop", "web"])).stdout).toBe(`Stopped ${id}\n`);
    expect(await project.aido(["exec", "web", "true"])).toMatchObject({ code: 125 });
    await project.ok(["start", "web"]);
    expect((await project.ok(["exec", "web", "cat", "file"])).stdout).toBe("kept\n");
  });

  test.each([
    [["inspect", "nothere1"], 4, "CONTAINER_NOT_FOUND"],
    [["logs", "nothere1"], 4, "CONTAINER_NOT_FOUND"],
    [["history", "nothere1"], 4, "CONTAINER_NOT_FOUND"],
    [["outputs"], 4, "CONTAINER_NOT_FOUND"],
    [["create", "--image", image, "--name", "../x"], 2, "VALIDATION_ERROR"],
    [["create", "--image", image, "--isolation", "kata"], 9, "ISOLATION_UNAVAILABLE"],
    ...(driver === "docker" ? [] : PRIVILEGED),
  ])("%j fails with its code", async (argv, code, name) => {
    await using project = await make();
    const outcome = await project.aido([...argv, "--json"]);
    expect(outcome.code).toBe(code);
    const last = outcome.stdout.trimEnd().split("\n").at(-1) ?? "";
    expect(JSON.parse(last)).toMatchObject({ error: { code: name, message: expect.any(String) } });
    expect(await project.json(["ls"])).toEqual([]);
  });

  test("a name that is taken is refused", async () => {
    await using project = await make();
    await project.create("--name", "web");
    const outcome = await project.aido(["create", "--image", image, "--name", "web", "--json"]);
    expect(outcome.code).toBe(5);
    expect(JSON.parse(outcome.stdout)).toMatchObject({ error: { code: "CONTAINER_NAME_TAKEN" } });
  });

  test("S3-85 images are listed, built once, used and removed", async ({ skip }) => {
    skip(driver !== "docker", "this driver has no images");
    const marker = randomBytes(8).toString("hex");
    await using project = await make({
      "tool/Dockerfile": `FROM ${image}\nENV MARKER=${marker}\nCOPY hello.sh /opt/\n`,
      "tool/hello.sh": "echo hello from an image",
    });
    const build = ["image", "build", "--name", "e2e", "tool"];
    const built = await project.json<{ ref: string; isCached: boolean }>(build);
    try {
      expect(built).toMatchObject({ isCached: false, ref: expect.stringMatching(/^aido\.local\/e2e:/) });
      expect(await project.json(build)).toMatchObject({ ref: built.ref, isCached: true });
      const { images } = await project.json<{ images: { ref: string }[] }>(["image", "list"]);
      expect(images.map(({ ref }) => ref)).toEqual(expect.arrayContaining([image, built.ref]));
      expect((await project.ok(["image", "pull", image])).stdout).toBe(`${image}\n`);
      const id = (await project.ok(["create", "--image", built.ref, "--quiet"])).stdout.trim();
      expect((await project.ok(["exec", id, "sh", "/opt/hello.sh"])).stdout).toBe("hello from an image\n");
      expect(await project.aido(["image", "rm", built.ref])).toMatchObject({ code: 5 });
      await project.ok(["rm", id]);
    } finally {
      await project.ok(["image", "rm", built.ref]);
    }
    expect(await project.aido(["image", "rm", image])).toMatchObject({ code: 3 });
  });

  test("nothing is left in the user's directory but what was asked for", async () => {
    await using project = await make({ "t.sh": "echo hi" });
    await project.ok([...run, "t.sh"]);
    expect(existsSync(project.path(".aido"))).toBe(way === "in this process");
  });
});

test("doctor over a server says what the server can do", async () => {
  await using project = await Project.on(server().url);
  const report = await project.json<{ checks: { message: string }[] }>(["doctor"]);
  expect(report).toMatchObject({ ok: true, driver: "local" });
  expect(report.checks.map(({ message }) => message).join("\n")).toContain(server().url);
});

test.each([[["serve"]], [["key", "list"]]])("%j refuses a server", async (argv) => {
  await using project = await Project.on(server().url);
  const outcome = await project.aido(argv);
  expect(outcome).toMatchObject({ code: 9, stderr: expect.stringContaining("this machine only") });
});

test("a server with keys is used with AIDO_API_KEY, and refuses whoever has none", async () => {
  await using guarded = await AidoServer.start();
  const key = (await guarded.local("key", "create", "ci")).trim();
  await guarded.stop();
  await guarded.restart();
  const project = await Project.on(guarded.url, { "t.sh": "echo hi" });
  try {
    for (const env of [{}, { AIDO_API_KEY: `${key.slice(0, -1)}${key.endsWith("A") ? "B" : "A"}` }]) {
      const refused = await project.aido(["ls"], { env });
      expect(refused).toMatchObject({ code: 3, stdout: "", stderr: expect.stringContaining("hint:") });
      expect(refused.stderr).not.toContain(key.slice(20));
    }
    const env = { AIDO_API_KEY: key };
    expect((await project.ok(["run", "t.sh"], { env })).stdout).toBe("hi\n");
    const host = await project.aido(["run", "t.sh", "--dangerous-allow-host-network", "--json"], { env });
    expect(JSON.parse(host.stdout)).toMatchObject({ error: { code: "FORBIDDEN" } });
    await project.ok(["rm", "--all"], { env });
  } finally {
    await rm(project.directory, { recursive: true, force: true });
  }
});

test("a server that is not there is an answer at once, with what to do", async () => {
  await using project = await Project.make("local");
  const outcome = await project.aido(["--server", "http://127.0.0.1:9", "ls"]);
  expect(outcome).toMatchObject({ code: 8, stderr: expect.stringContaining("aido serve") });
});
