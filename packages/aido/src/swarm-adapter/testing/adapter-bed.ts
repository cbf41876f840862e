import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../core/clock.ts";
import type { SwarmMessage } from "../../core/swarm/messages/message.ts";
import { parseMessage } from "../../core/swarm/messages/parse-message.ts";
import { GitBed } from "../../core/swarm/testing/git-bed.ts";
import { type Json, storyJson, taskFileText } from "../../core/swarm/testing/task-file-text.ts";
import { SystemClock } from "../../core/system-clock.ts";
import { runAdapter } from "../run-adapter.ts";

export const TASK_FILE = ".aimi/tasks/2026-01-05-login-tasks.json";
export const BRANCH = "feat/sign-in";
export const SWARM_ID = "6f1c1b1e-0c4b-4f6e-9a55-3b0a4d3f9b11";
export const CONTAINER_ID = "4f0c2b9a81de";

/** What the tests look at of any message. */
export interface Told {
  readonly type: SwarmMessage["type"];
  readonly payload: {
    readonly storyId?: string;
    readonly status?: string;
    readonly output?: string;
    readonly code?: string;
    readonly message?: string;
    readonly prUrl?: string | null;
    readonly errors?: readonly string[];
    readonly usage?: Readonly<Record<string, number>>;
    readonly changedFiles?: readonly string[];
  };
}

export interface Ran {
  readonly code: number;
  readonly messages: readonly Told[];
  readonly last: Told;
  /** `US-001 completed`, without those of the agent as a whole. */
  readonly steps: readonly string[];
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly request?: Json;
  readonly payload?: Json;
  readonly line?: string;
  readonly signal?: AbortSignal;
  readonly clock?: Clock;
  readonly onLine?: (line: string) => void;
  /** Until then nobody reads what is told. */
  readonly reader?: Promise<void>;
}

/** A repository with a task file at an origin that is reached by ssh, whose other end is this machine's git. */
export class AdapterBed implements Disposable {
  readonly bed: GitBed;
  readonly workspace: string;
  readonly repoUrl = "git@test.invalid:team/shop.git";

  constructor(
    stories: readonly unknown[] = [storyJson("US-001"), storyJson("US-002")],
    files: Readonly<Record<string, string>> = {},
  ) {
    const tasks = { [TASK_FILE]: taskFileText(stories) };
    this.bed = new GitBed({ "README.md": "shop\n", ...tasks, ...files });
    const { directory, origin } = this.bed;
    this.workspace = join(directory, "workspace");
    mkdirSync(join(directory, "team"));
    symlinkSync(origin, join(directory, "team/shop.git"));
    this.program("ssh", `cd '${directory}' && exec sh -c "$2"`);
  }

  get env(): Record<string, string> {
    return {
      PATH: `${this.bed.env["PATH"]}:${join(process.execPath, "..")}`,
      HOME: this.bed.directory,
      GIT_SSH_COMMAND: join(this.bed.directory, "ssh"),
      GIT_SSH_VARIANT: "simple",
      AIMI_WORKSPACE: this.workspace,
      SWARM_ID,
      CONTAINER_ID,
    };
  }

  /** An agent of the kind `command`: a shell script that gets its orders as $orders and its story as $story. */
  agent(script: string): Record<string, string> {
    const read = 'orders=$(cat); story=$(printf %s "$orders" | grep -o "^US-[0-9]*" | head -n 1)';
    const program = this.program("agent", `${read}\n${script}`);
    return { AIMI_AGENT: "command", AIMI_AGENT_ARGV: JSON.stringify([program]) };
  }

  program(name: string, script: string): string {
    const path = join(this.bed.directory, name);
    writeFileSync(path, `#!/bin/sh\n${script}\n`);
    chmodSync(path, 0o755);
    return path;
  }

  requestLine({ request, payload }: Pick<RunOptions, "request" | "payload"> = {}): string {
    const base = { taskFilePath: TASK_FILE, branchName: BRANCH, repoUrl: this.repoUrl };
    const ids = { swarmId: SWARM_ID, containerId: CONTAINER_ID };
    const timestamp = "2026-01-05T10:00:00Z";
    const message = { type: "task-request", timestamp, ...ids, payload: { ...base, ...payload }, ...request };
    return `${JSON.stringify(message)}\n`;
  }

  async run(options: RunOptions = {}): Promise<Ran> {
    let stdout = "";
    let stderr = "";
    const never = new AbortController().signal;
    const line = options.line ?? this.requestLine(options);
    const code = await runAdapter({
      env: { ...this.env, ...options.env },
      input: undefined,
      stdin: once(Buffer.from(line)),
      write: async (text) => {
        await options.reader;
        stdout += text;
        options.onLine?.(text);
      },
      log: (text) => {
        stderr += `${text}\n`;
      },
      clock: options.clock ?? new SystemClock(),
      signal: options.signal ?? never,
      abandon: never,
    });
    return { code, stderr, ...readOutput(stdout) };
  }

  /** A file of the branch at origin. */
  atOrigin(path: string, branch = BRANCH): string {
    return this.bed.git(this.bed.origin, "show", `${branch}:${path}`);
  }

  subjects(branch = BRANCH): string[] {
    return this.bed
      .git(this.bed.origin, "log", "--format=%s", `main..${branch}`)
      .trim()
      .split("\n")
      .reverse();
  }

  statuses(branch = BRANCH): Record<string, string> {
    return statusesOf(this.atOrigin(TASK_FILE, branch));
  }

  [Symbol.dispose](): void {
    this.bed[Symbol.dispose]();
  }
}

export function statusesOf(text: string): Record<string, string> {
  const { userStories } = JSON.parse(text) as { userStories: { id: string; status: string }[] };
  return Object.fromEntries(userStories.map(({ id, status }) => [id, status]));
}

/** Every line is a message by all rules, exactly one of them is a last one, and it is the last. */
export function readOutput(stdout: string): Pick<Ran, "messages" | "last" | "steps" | "stdout"> {
  const lines = stdout.split("\n");
  if (lines.pop() !== "") throw new Error("the last line is cut off");
  const messages = lines.map((line) => parseMessage(line) as Told);
  const finals = messages.filter(({ type }) => type !== "progress-update");
  const last = messages.at(-1);
  if (finals.length !== 1 || last === undefined || finals[0] !== last)
    throw new Error(`no one end: ${stdout}`);
  const steps = messages
    .filter(({ payload }) => payload.storyId !== undefined && payload.storyId !== "US-000")
    .map(({ payload }) => `${payload.storyId} ${payload.status}`);
  return { messages, last, steps, stdout };
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
