import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type AgentLayer, createAgentLayer, DockerError } from "../../src/agent-layer/index.ts";
import { SqliteSessionStore } from "../../src/agent-layer/sqlite-session-store.ts";
import { openDefaultAido } from "../../src/compose.ts";
import { call, ScriptedModel } from "./scripted-model.ts";

export interface AgentLayerTarget {
  driver: "docker" | "local";
  /** Must have a shell. */
  image: string;
  /** What the engine itself calls a container; undefined where there is no engine. */
  nameInEngine?: (containerId: string) => Promise<string>;
}

/** The agent layer on a real driver. */
export function agentLayerContract({ driver, image, nameInEngine }: AgentLayerTarget): void {
  // An engine's names are shared by all who use it.
  const unique = randomUUID().slice(0, 8);
  const main = `coding-agent-main-${unique}`;
  const alone = `coding-agent-alone-${unique}`;
  describe(`the agent layer on ${driver}`, () => {
    let directory = "";
    let dataDir = "";
    const lines: string[] = [];
    const open = (config: object = {}): AgentLayer =>
      createAgentLayer({ dataDir, driver, config: { image, ...config }, log: (line) => lines.push(line) });
    /** The containers that are there, by name. */
    const names = async (): Promise<(string | undefined)[]> => {
      const aido = await openDefaultAido({ dataDir, driver });
      const left = await aido.sandboxes.list({ states: ["pending", "running", "stopped"] });
      await aido.close();
      return left.map((sandbox) => sandbox.name);
    };
    let layer: AgentLayer;
    let id = "";

    beforeAll(async () => {
      directory = await mkdtemp(join(tmpdir(), "aido-agent-layer-"));
      dataDir = join(directory, "data");
      layer = open();
      id = await layer.startContainer(`main-${unique}`);
    });
    afterAll(async () => {
      await layer.cleanupContainer(id);
      await layer.close();
      await rm(directory, { recursive: true, force: true });
    });

    test("S4-8 S4-12 S4-14 a container is named by its session and known by twelve characters", async () => {
      expect(id).toHaveLength(12);
      expect(lines).toContain(`[Docker] Starting container: ${main}`);
      const aido = await openDefaultAido({ dataDir, driver });
      expect(await aido.sandboxes.get(main)).toMatchObject({
        state: "running",
        workdir: "/workspace",
      });
      await aido.close();
      if (nameInEngine !== undefined) expect(await nameInEngine(id)).toBe(main);
    });

    test("S4-9 S4-11 a container runs on by itself: with nothing to do, and when whoever started it has gone", async () => {
      const first = open();
      const other = await first.startContainer(`alone-${unique}`);
      await first.close();
      const next = open();
      try {
        expect(await next.execInContainer(alone, "echo here")).toMatchObject({
          stdout: "here\n",
          exitCode: 0,
        });
      } finally {
        await next.cleanupContainer(alone);
        await next.close();
      }
      expect(other).toHaveLength(12);
    });

    test("S4-2 S4-10 S4-15 S4-16 a command runs by sh -c in the working directory", async () => {
      expect(await layer.execInContainer(id, "pwd; echo err >&2; exit 3")).toEqual({
        stdout: "/workspace\n",
        stderr: "err\n",
        exitCode: 3,
      });
    });

    test("S4-17 S4-30 S4-34 a command over its time is killed with its children and raises COMMAND_TIMEOUT", async () => {
      const marker = `7${Date.now() % 100000}`;
      const failure = layer.execInContainer(id, `(sleep ${marker} & sleep ${marker}); wait`, 300);
      await expect(failure).rejects.toMatchObject({ name: "DockerError", code: "COMMAND_TIMEOUT" });
      const left = await layer.execInContainer(
        id,
        `for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $f 2>/dev/null | grep -x 'sleep ${marker} ' ; done; true`,
      );
      expect(left.stdout).toBe("");
    });

    test("S4-18 S4-20 output is cut at 10,000 characters a stream, however much there is", async () => {
      const { stdout, exitCode } = await layer.execInContainer(id, "head -c 5000000 /dev/zero | tr '\\0' x");
      expect(stdout).toBe(`${"x".repeat(10_000)}\n[...truncated at 10000 chars...]`);
      expect(exitCode).toBe(0);
    });

    test("S4-21 S4-22 S4-23 files with quotes, dollars and new lines come back exactly", async () => {
      const name = `dir 'one'/"two" $(touch x)\n.txt`;
      const content = `$HOME \`id\` 'x' "y" \\n é 漢\n`;
      expect(await layer.writeFileInContainer(id, `/${name}`, content)).toMatchObject({ exitCode: 0 });
      expect(await layer.readFileInContainer(id, name)).toEqual({ stdout: content, stderr: "", exitCode: 0 });
    });

    test("S4-23 a file far above the kernel's argument limit can be written", async () => {
      const content = "0123456789".repeat(500_000);
      expect(await layer.writeFileInContainer(id, "large.txt", content)).toMatchObject({ exitCode: 0 });
      expect((await layer.execInContainer(id, "wc -c < large.txt")).stdout.trim()).toBe(
        String(content.length),
      );
    });

    test("S4-21 a path with .. stays below the working directory", async () => {
      await layer.writeFileInContainer(id, "../../../../outside.txt", "inside");
      expect((await layer.execInContainer(id, "cat /workspace/outside.txt")).stdout).toBe("inside");
      expect(await layer.readFileInContainer(id, "../etc/passwd")).toMatchObject({ exitCode: 1, stdout: "" });
    });

    test("S4-24 a directory is listed in long form, the working directory by default", async () => {
      await layer.writeFileInContainer(id, "listed/a.txt", "abc");
      const { stdout } = await layer.listDirectoryInContainer(id, "listed");
      expect(stdout).toMatch(/^-rw-r--r-- \d+ +\d+ +3 .* a\.txt$/m);
      for (const path of [undefined, "", "/"]) {
        expect((await layer.listDirectoryInContainer(id, path)).stdout).toMatch(/^d.* listed$/m);
      }
      expect(await layer.listDirectoryInContainer(id, "missing")).toMatchObject({ exitCode: 1 });
    });

    test("S4-13 S4-32 a container that cannot start raises CONTAINER_START_FAILED", async () => {
      const broken = open({ image: "aido-test/no-such-image:none" });
      const failure = broken.startContainer("broken");
      await expect(failure).rejects.toBeInstanceOf(DockerError);
      await expect(failure).rejects.toMatchObject({
        code: "CONTAINER_START_FAILED",
        message: expect.stringMatching(/^Failed to start container: \S.*no-such-image.*\S$/s),
      });
      await broken.close();
    });

    test("S4-32 S4-36 a session whose container cannot start has failed, and there is no going on", async () => {
      const store = new SqliteSessionStore(join(directory, `${randomUUID()}.db`));
      const broken = open({ image: "aido-test/no-such-image:none" });
      const model = new ScriptedModel([]);
      const failure = broken.runSession("never", { model, store });
      await expect(failure).rejects.toMatchObject({ code: "CONTAINER_START_FAILED", recoverable: false });
      expect(model.seen).toEqual([]);
      const sessionId = lines
        .findLast((line) => line.startsWith("[Docker] Starting container: "))
        ?.slice(-36);
      expect(await store.getSession(sessionId ?? "")).toMatchObject({ status: "failed", task: "never" });
      expect(await names()).toEqual([main]);
      await broken.close();
      await store.close();
    });

    test("S4-19 S4-33 a command in a container that is gone is EXEC_FAILED", async () => {
      const failure = layer.execInContainer("0123456789ab", "true");
      await expect(failure).rejects.toMatchObject({ code: "EXEC_FAILED" });
    });

    test("S4-25 S4-26 S4-29 S4-35 clean-up of nothing or of something unknown does not throw", async () => {
      await layer.cleanupContainer("");
      await layer.cleanupContainer("0123456789ab");
      expect(lines).toContain("[Docker] Cleaning up: 0123456789ab");
      expect(lines.some((line) => line.startsWith("[Docker] Cleanup failed:"))).toBe(true);
    });

    test("S4-1 S4-36 a session runs its tools in a container of its own, is recorded, and is cleaned up", async () => {
      const store = new SqliteSessionStore(join(directory, `${randomUUID()}.db`));
      const model = new ScriptedModel([
        call("write_file", { path: "main.sh", content: "echo 6 times 7\nexit 2\n" }),
        call("execute_command", { command: "sh main.sh" }),
        call("read_file", { path: "main.sh" }),
        call("list_directory", {}),
        call("no_such_tool", {}),
        (messages) => ({ text: `done: ${messages.at(-4)?.content}` }),
      ]);
      const result = await layer.runSession("compute", { model, store });
      expect(result).toMatchObject({ steps: 6, finished: true });
      const tools = (await store.listMessages(result.sessionId)).filter((message) => message.role === "tool");
      expect(tools.map((message) => message.content)).toEqual([
        "[exit code: 0]",
        "6 times 7\n\n[exit code: 2]",
        "echo 6 times 7\nexit 2\n\n[exit code: 0]",
        expect.stringMatching(/main\.sh/),
        expect.stringMatching(/INVALID_ARGUMENTS.*execute_command/),
      ]);
      expect(await store.getSession(result.sessionId)).toMatchObject({
        status: "completed",
        task: "compute",
      });
      expect(lines).toContain(`[Docker] Starting container: coding-agent-${result.sessionId}`);
      expect(await names()).toEqual([main]);
      await store.close();
    });

    test("S4-33 S4-34 a tool whose command is over its time says so to the model, which goes on", async () => {
      const store = new SqliteSessionStore(join(directory, `${randomUUID()}.db`));
      const hasty = open({ commandTimeoutMs: 300 });
      const model = new ScriptedModel([
        call("execute_command", { command: "echo kept > file; sleep 600" }),
        call("read_file", { path: "file" }),
        { text: "done" },
      ]);
      try {
        expect(await hasty.runSession("wait", { model, store })).toMatchObject({ steps: 3, finished: true });
      } finally {
        await hasty.close();
      }
      const told = model.seen.at(-1)?.filter(({ role }) => role === "tool");
      expect(told?.map(({ content }) => content)).toEqual([
        expect.stringMatching(/^\[error: COMMAND_TIMEOUT\] .*300 ms/),
        "kept\n\n[exit code: 0]",
      ]);
      expect(await names()).toEqual([main]);
      await store.close();
    });

    test("S4-36 a session whose model fails is recorded as failed, cleaned up, and the error is thrown", async () => {
      const store = new SqliteSessionStore(join(directory, `${randomUUID()}.db`));
      let sessionId = "";
      const watched = Object.assign(Object.create(store) as SqliteSessionStore, {
        createSession: async (task: string) => {
          const session = await store.createSession(task);
          sessionId = session.id;
          return session;
        },
        updateSessionStatus: store.updateSessionStatus.bind(store),
        appendMessage: store.appendMessage.bind(store),
        listMessages: store.listMessages.bind(store),
      });
      const model = new ScriptedModel([
        () => {
          throw new Error("the model is away");
        },
      ]);
      await expect(layer.runSession("fail", { model, store: watched })).rejects.toThrow("the model is away");
      expect(await store.getSession(sessionId)).toMatchObject({ status: "failed" });
      expect(lines).toContain(`[Docker] Starting container: coding-agent-${sessionId}`);
      expect(await names()).toEqual([main]);
      await store.close();
    });

    test("an agent that never stops calling tools is stopped after its steps", async () => {
      const store = new SqliteSessionStore(join(directory, `${randomUUID()}.db`));
      const again = () => call("execute_command", { command: "true" });
      const model = new ScriptedModel(Array.from({ length: 5 }, () => again));
      expect(await layer.runSession("loop", { model, store, maxSteps: 3 })).toMatchObject({
        steps: 3,
        finished: false,
      });
      await store.close();
    });
  });
}
