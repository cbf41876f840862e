import { execFileSync, spawn } from "node:child_process";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { adapterBundlePath } from "../../src/compose/adapter-bundle-path.ts";
import { storyJson } from "../../src/core/swarm/testing/task-file-text.ts";
import { AdapterBed, type Ran, readOutput } from "../../src/swarm-adapter/testing/adapter-bed.ts";

const ROOT = join(import.meta.dirname, "../../../..");

interface Started {
  readonly ended: Promise<Ran>;
  readonly said: (text: string) => Promise<void>;
  readonly kill: (signal: NodeJS.Signals) => void;
}

/** As in an image: a file without an ending, without anything beside it. */
function start(
  bed: AdapterBed,
  options: { env: Record<string, string>; args?: string[]; line?: string },
): Started {
  const program = join(bed.bed.directory, "acp-adapter");
  copyFileSync(adapterBundlePath(), program);
  const child = spawn(program, options.args ?? [], { env: { ...bed.env, ...options.env }, cwd: "/" });
  let stdout = "";
  let stderr = "";
  const waiting = new Set<() => void>();
  child.stdout.on("data", (part) => {
    stdout += part;
    for (const look of waiting) look();
  });
  child.stderr.on("data", (part) => {
    stderr += part;
  });
  child.stdin.end(options.line ?? bed.requestLine());
  const ended = new Promise<Ran>((resolve, reject) => {
    child.on("close", (code) => {
      try {
        resolve({ code: code ?? -1, stderr, ...readOutput(stdout) });
      } catch (thrown) {
        reject(new Error(`${thrown}\n${stderr}`));
      }
    });
  });
  const said = (text: string) =>
    new Promise<void>((resolve) => {
      const look = () => {
        if (stdout.includes(text)) resolve();
      };
      waiting.add(look);
      look();
    });
  return { ended, said, kill: (signal) => void child.kill(signal) };
}

test("S1-72 the built adapter does a task file on its own, from standard input or a file", async () => {
  using bed = new AdapterBed([storyJson("US-001")]);
  const env = bed.agent('echo "by $story" > "$story.txt"; echo done');
  const { code, last, stderr } = await start(bed, { env }).ended;
  expect([code, last.payload.status, stderr]).toEqual([0, "completed", ""]);
  expect(bed.atOrigin("US-001.txt")).toBe("by US-001\n");
  const input = join(bed.bed.directory, "request.json");
  writeFileSync(input, bed.requestLine());
  const again = await start(bed, { env, args: ["--input", input], line: "" }).ended;
  expect([again.code, again.steps]).toEqual([0, ["US-001 completed"]]);
});

test("the built adapter answers --version and --help, and wrong arguments with 1", () => {
  const run = (...args: string[]) =>
    execFileSync(adapterBundlePath(), args, { encoding: "utf8", stdio: "pipe" });
  const { version } = JSON.parse(readFileSync(join(ROOT, "packages/aido/package.json"), "utf8"));
  expect(run("--version")).toBe(`${version}\n`);
  expect(run("--help")).toContain("Usage: acp-adapter");
  expect(() => run("--nonsense")).toThrow(expect.objectContaining({ status: 1, stdout: "" }));
});

test("S1-72 SIGTERM to the built adapter ends its agent, and it ends with 130 and a last message", async () => {
  using bed = new AdapterBed([storyJson("US-001")]);
  const run = start(bed, { env: bed.agent("echo half > half.txt; echo begun; exec sleep 600") });
  await run.said("begun");
  run.kill("SIGTERM");
  const { code, last } = await run.ended;
  expect([code, last.payload.status]).toEqual([130, "stopped"]);
  expect(bed.atOrigin("half.txt")).toBe("half\n");
});

test("a second signal to the built adapter does not wait for an agent that stays", async () => {
  using bed = new AdapterBed([storyJson("US-001")]);
  const script = 'trap "" TERM; echo begun; while :; do sleep 1; done';
  const run = start(bed, { env: bed.agent(script) });
  await run.said("begun");
  run.kill("SIGTERM");
  run.kill("SIGINT");
  const { code, last } = await run.ended;
  expect([code, last.payload.status]).toEqual([130, "stopped"]);
});

test("S1-24 the built adapter speaks to agents over the Agent Client Protocol", async () => {
  using bed = new AdapterBed([storyJson("US-001")]);
  const agent = join(import.meta.dirname, "../agents/scripted-acp-agent.mjs");
  const env = { AIMI_AGENT: "acp", AIMI_AGENT_ARGV: JSON.stringify([process.execPath, agent]) };
  const { code, last, messages } = await start(bed, { env }).ended;
  expect([code, last.payload.status]).toEqual([0, "completed"]);
  expect(messages.at(-2)?.payload.usage).toEqual({ turns: 1, inputTokens: 12, outputTokens: 5 });
});

test("S1-9 S1-24 the built adapter drives the real Claude Code, whose edits are at origin in the end", async () => {
  const claude = execFileSync("bash", [join(ROOT, "scripts/test-agents.sh")], { encoding: "utf8" }).trim();
  using bed = new AdapterBed([storyJson("US-001", { description: "Please write the file." })]);
  const port = await freePort();
  const script = join(import.meta.dirname, "../agents/scripted-messages-api.mjs");
  const api = spawn(process.execPath, [script, String(port)], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    await new Promise((resolve) => api.stdout.once("data", resolve));
    const env = {
      AIMI_AGENT: "claude",
      AIMI_AGENT_ARGV: JSON.stringify([claude]),
      ANTHROPIC_API_KEY: "sk-ant-not-a-key-0123456789",
      ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}`,
    };
    const { code, last, messages, stdout, steps } = await start(bed, { env }).ended;
    expect([code, last.payload]).toEqual([0, { status: "completed", prUrl: null, errors: [] }]);
    expect(steps).toEqual(["US-001 in_progress", "US-001 completed"]);
    expect(messages.at(-2)?.payload).toMatchObject({ output: "The file is written.", usage: { turns: 2 } });
    expect(messages.at(-2)?.payload.usage?.["inputTokens"]).toBeGreaterThanOrEqual(200);
    expect(bed.atOrigin("claude.txt")).toBe("by claude\n");
    expect(stdout).not.toContain("sk-ant-not");
  } finally {
    api.kill();
  }
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}
