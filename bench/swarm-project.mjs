// A project with task files, and an image whose adapter is a shell script: what a swarm needs besides itself.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { BUSYBOX_IMAGE, CLI, temporaryDirectory } from "./product.mjs";

const IMAGE = `aido-test:swarm-bench-${process.pid}`;
/** Messages and log lines a second of each worker: many times what an agent has to say. */
export const RATE = { messages: 5, logLines: 20 };

/** Says what an agent says until it is told to end. */
const ADAPTER = `#!/bin/sh
read -r task
trap 'exit 130' TERM
say() {
  printf '{"type":"progress-update","timestamp":"2026-01-05T00:00:00.000Z","swarmId":"%s","containerId":"%s","payload":{"storyId":"%s","status":"in_progress","output":"Editing src/file-%s.ts","usage":{"turns":%s,"inputTokens":%s000,"outputTokens":%s}}}\\n' "$SWARM_ID" "$CONTAINER_ID" "$1" "$2" "$2" "$2" "$2"
}
count=1
say US-001 "$count"
while :; do
  count=$((count + 1))
  say US-000 "$count"
  for line in 1 2 3 4; do echo "log line $count.$line of an agent at work" >&2; done
  sleep 0.2
done
`;

export function git(directory, ...args) {
  const identity = ["-c", "user.name=bench", "-c", "user.email=bench@example.com"];
  const { status, stderr } = spawnSync("git", [...identity, ...args], { cwd: directory, encoding: "utf8" });
  if (status !== 0) throw new Error(`git ${args[0]} ended with ${status}: ${stderr}`);
}

function docker(args, input) {
  const { status, stderr } = spawnSync("docker", args, { input, encoding: "utf8" });
  if (status !== 0) throw new Error(`docker ${args[0]} ended with ${status}: ${stderr}`);
}

/** Runs `action` with the image, which goes with it. */
export async function withWorkerImage(action) {
  const code = Buffer.from(ADAPTER).toString("base64");
  const adapter = "/opt/aimi/acp-adapter";
  const file = `FROM ${BUSYBOX_IMAGE}\nRUN mkdir -p /opt/aimi && echo ${code} | base64 -d >${adapter} && chmod 755 ${adapter}\n`;
  docker(["build", "-q", "--network", "none", "-t", IMAGE, "-"], file);
  try {
    return await action();
  } finally {
    docker(["rmi", "--no-prune", IMAGE]);
  }
}

/** A project with so many task files. Disposing stops its workers and removes it. */
export class SwarmProject {
  #directory = temporaryDirectory();
  path = join(this.#directory.path, "shop");

  constructor(workers) {
    const tasks = join(this.path, ".aimi/tasks");
    mkdirSync(tasks, { recursive: true });
    git(this.path, "init", "-q", "-b", "main");
    git(this.path, "commit", "-q", "--allow-empty", "-m", "Begin");
    git(this.path, "remote", "add", "origin", "https://example.com/shop.git");
    for (let index = 0; index < workers; index++) {
      writeFileSync(join(tasks, `2026-01-05-bench-${process.pid}-${index}-tasks.json`), taskFile(index));
    }
  }

  get argv() {
    return [CLI, "swarm", "run", "--all", "--isolation", "container", "--image", IMAGE];
  }

  env = { ...process.env, ANTHROPIC_API_KEY: "none", GITHUB_TOKEN: "none", TERM: "xterm-256color" };

  /** Starts the swarm and gives the time until all of its workers run. */
  async untilRunning(workers) {
    const started = performance.now();
    const child = spawn(process.execPath, [...this.argv, "--json"], {
      cwd: this.path,
      env: this.env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const closed = once(child, "close");
    let complaint = "";
    child.stderr.on("data", (text) => {
      complaint += text;
    });
    const running = new Set();
    try {
      for await (const line of createInterface({ input: child.stdout })) {
        const { type, worker, state, reason } = JSON.parse(line);
        if (type !== "state" || state === "creating") continue;
        // One that has ended again was never at work.
        if (state !== "running") throw new Error(`${worker} is ${state}: ${reason}`);
        running.add(worker);
        if (running.size === workers) return performance.now() - started;
      }
      throw new Error(`the swarm ended with ${running.size} of ${workers} workers running: ${complaint}`);
    } finally {
      child.kill("SIGINT");
      await closed;
      this.stop();
    }
  }

  stop() {
    for (const command of [["stop", "--grace", "1s"], ["cleanup"]]) {
      const { status, stderr } = spawnSync(process.execPath, [CLI, "swarm", ...command], {
        cwd: this.path,
        env: this.env,
        encoding: "utf8",
      });
      if (status !== 0) throw new Error(`aido swarm ${command[0]} ended with ${status}: ${stderr}`);
    }
  }

  remove() {
    this.#directory.remove();
  }
}

function taskFile(index) {
  const story = (number) => ({
    id: `US-00${number}`,
    title: `Story ${number}`,
    description: "As a user I want it measured.",
    acceptanceCriteria: ["Typecheck passes"],
    priority: number,
    status: "pending",
    dependsOn: [],
  });
  const metadata = {
    title: `Task ${index}`,
    type: "feat",
    branchName: `feat/bench-${index}`,
    createdAt: "2026-01-05",
  };
  return JSON.stringify({ schemaVersion: "3.0", metadata, userStories: [1, 2, 3].map(story) });
}
