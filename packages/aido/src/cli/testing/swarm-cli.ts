import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { SwarmState } from "../../core/swarm/state/swarm-state.ts";
import { FakeWorkers } from "../../core/swarm/testing/fake-workers.ts";
import { GitBed } from "../../core/swarm/testing/git-bed.ts";
import { doAll } from "../../core/swarm/testing/swarm-bed.ts";
import { storyJson, taskFileText } from "../../core/swarm/testing/task-file-text.ts";
import type { CliContext, GlobalOptions } from "../context.ts";
import { MemorySink } from "../output/memory-sink.ts";
import { runCli } from "../run-cli.ts";
import { type FakeContext, fakeContext } from "./fake-context.ts";
import type { FakeKeyboard } from "./fake-keyboard.ts";

export interface SwarmCliOptions {
  stdin?: FakeKeyboard;
  env?: Record<string, string>;
  terminal?: boolean;
  startInBackground?: CliContext["startInBackground"];
}

const MADE = {
  image: "aimi-sandbox-shop:latest",
  id: "sha256:ab",
  checksum: "c",
  rebuilt: false,
  bytes: 1,
  slug: "shop",
  madeFrom: [],
  leftOut: [],
};

/** The command line in a real repository, with workers in memory that do all their stories at once. */
export class SwarmCli implements Disposable {
  readonly bed = new GitBed();
  readonly workers = new FakeWorkers();

  constructor() {
    this.bed.user("remote", "set-url", "origin", "https://example.com/shop.git");
    mkdirSync(join(this.bed.project, ".aimi/tasks"), { recursive: true });
    this.workers.onStart = doAll;
  }

  task(name: string, { branchName = `feat/${name}`, status = "pending" } = {}): void {
    const stories = ["US-001", "US-002"].map((id) => storyJson(id, { status }));
    const text = taskFileText(stories, { metadata: { title: `Do ${name}`, branchName } });
    writeFileSync(join(this.bed.project, `.aimi/tasks/${name}-tasks.json`), text);
  }

  onDisk(): SwarmState {
    return JSON.parse(readFileSync(join(this.bed.project, ".aimi/swarm-state.json"), "utf8"));
  }

  statuses(): string[] {
    return this.onDisk().containers.map(
      ({ containerName, status }) => `${containerName.replace("aimi-swarm-", "")} ${status}`,
    );
  }

  start(
    argv: readonly string[],
    { stdin, env, terminal, startInBackground }: SwarmCliOptions = {},
  ): { base: FakeContext; ended: Promise<number> } {
    const base = fakeContext({
      cwd: this.bed.project,
      env: { ...this.bed.env, ANTHROPIC_API_KEY: "secret-key", GITHUB_TOKEN: "secret-token", ...env },
      workers: this.workers,
      swarmImages: { ensureBase: async () => MADE, ensureProject: async () => MADE },
      settings: [
        { key: "swarm.isolation", value: "sysbox", source: "default" },
        { key: "swarm.maxWorkers", value: 4, source: "default" },
      ],
      ...(stdin === undefined ? {} : { stdin }),
      ...(startInBackground === undefined ? {} : { startInBackground }),
      ...(terminal ? { stderr: new MemorySink(80) } : {}),
    });
    const makeContext = (globals: GlobalOptions) => Promise.resolve({ ...base, globals });
    return { base, ended: runCli(argv, { version: "1.2.3", makeContext }) };
  }

  async aido(
    argv: readonly string[],
    options: SwarmCliOptions = {},
  ): Promise<{ code: number; stdout: string; stderr: string }> {
    const { base, ended } = this.start(argv, options);
    const code = await ended;
    return { code, stdout: base.stdout.text, stderr: base.stderr.text };
  }

  [Symbol.dispose](): void {
    this.bed[Symbol.dispose]();
  }
}
