import { randomUUID } from "node:crypto";
import type { AgentEvent } from "@aido/sdk/protocol";
import type { Clock } from "../core/clock.ts";
import type { AdapterOptions } from "../core/swarm/messages/adapter-environment.ts";
import type { TaskRequest } from "../core/swarm/messages/message.ts";
import type { Story } from "../core/swarm/tasks/task-file.ts";
import { agentEnvironment } from "./agent/agent-environment.ts";
import { Budget } from "./agent/budget.ts";
import { chooseAgent } from "./agent/choose-agent.ts";
import { runStory } from "./agent/run-story.ts";
import { storyPrompt } from "./agent/story-prompt.ts";
import { openForge } from "./forge/github.ts";
import { changedPaths } from "./git/changed-paths.ts";
import { commitWork, findIdentity } from "./git/commit-work.ts";
import { type OpenedWorkspace, openWorkspace } from "./git/open-workspace.ts";
import { pushBranch } from "./git/push-branch.ts";
import type { Remote } from "./git/remote.ts";
import { stageWork } from "./git/stage-work.ts";
import type { Environment, WorkerGit } from "./git/worker-git.ts";
import type { Reporter } from "./report/reporter.ts";
import type { Scrubber } from "./report/scrubber.ts";
import type { Stopped } from "./stopped.ts";
import { doStories } from "./stories/do-stories.ts";
import { completedOnBranch, isPartOfBranch, isSomebodyElses } from "./stories/story-commits.ts";
import { WorkerTaskFile } from "./stories/worker-task-file.ts";

const PUSH_MS = 10 * 60_000;
/** After a request to stop, whose patience is not known. */
const LAST_PUSH_MS = 20_000;
const SCAN_MS = 10_000;
const DEFAULT_SILENT_SECONDS = 1_800;

export interface WorkerParts {
  readonly request: TaskRequest["payload"];
  readonly options: AdapterOptions;
  readonly env: Environment;
  readonly git: WorkerGit;
  readonly remote: Remote;
  readonly reporter: Reporter;
  readonly scrubber: Scrubber;
  readonly clock: Clock;
  readonly log: (line: string) => void;
  /** Ends the worker's stories; aborts `signal`. */
  readonly stop: (reason: Stopped) => void;
  readonly signal: AbortSignal;
}

/** One worker at its work: a branch, its stories, and what is to be told in the end. */
export class Worker {
  readonly errors: string[] = [];
  readonly #parts: WorkerParts;
  #opened: OpenedWorkspace | undefined;
  #tip: string | undefined;
  #pushed: string | undefined;
  #tasks: WorkerTaskFile | undefined;
  #scannedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: WorkerParts) {
    this.#parts = parts;
  }

  /** All stories, in order. Raises Stopped and WorkerFailure; what was done until then is committed. */
  async run(): Promise<void> {
    const { request, git, remote, signal, reporter, scrubber, options, env, stop, log } = this.#parts;
    const identity = () => findIdentity(git, env);
    const opened = await openWorkspace(git, remote, request.branchName, {
      signal,
      keepWork: async (tip) => {
        const message = "Keep what an interrupted session left unfinished\n";
        const work = {
          branch: request.branchName,
          tip,
          message,
          identity: await identity(),
          keepRemoved: true,
          log,
        };
        await commitWork(git, work);
      },
    });
    this.#opened = opened;
    this.#tip = opened.tip;
    if (opened.isPublished && (await isSomebodyElses(git, opened)))
      log(`warning: ${request.branchName} is at origin with commits that no worker made; it is gone on with`);
    const tasks = await WorkerTaskFile.open(git.workspace, request.taskFilePath);
    this.#tasks = tasks;
    const { path } = tasks.file;
    const completedBefore = (await isPartOfBranch(git, path))
      ? new Set<string>()
      : await completedOnBranch(git, { base: opened.base, tip: opened.tip, path });
    const agent = await chooseAgent(options);
    const budget = new Budget(options, stop);
    const committer = await identity();
    await doStories({
      tasks,
      reporter,
      completedBefore,
      errors: this.errors,
      clean: (text) => scrubber.scrub(text),
      admit: () => {
        budget.nextStory();
        signal.throwIfAborted();
      },
      run: async (story: Story) => {
        return await runStory({
          agent,
          prompt: storyPrompt(tasks.file, story, request.branchName),
          model: options.model,
          sessionId: randomUUID(),
          workdir: git.workspace,
          env: agentEnvironment(env, request.envVars),
          budget,
          maxSilentMs: (options.maxSilentSeconds ?? DEFAULT_SILENT_SECONDS) * 1_000,
          clock: this.#parts.clock,
          signal,
          onEvent: (event) => this.#hear(event, budget),
          onStderr: (text) => log(text.trimEnd()),
        });
      },
      stage: async () => await stageWork(git, { log }),
      commit: async (message) => {
        const work = {
          branch: request.branchName,
          tip: this.#tip ?? opened.tip,
          message,
          identity: committer,
          log,
        };
        this.#tip = await commitWork(git, work);
        await this.#tellChanged();
        // A container can be lost at any time; what is at origin is not.
        if (!signal.aborted) await this.push().catch((thrown) => log(`push: ${textOf(thrown)}`));
      },
    });
  }

  /** Nothing to do when origin has all of it. */
  async push(): Promise<void> {
    const { git, remote, signal, request } = this.#parts;
    const tip = this.#tip;
    if (tip === undefined || tip === this.#pushed || this.#opened === undefined) return;
    // A branch without work of its own need not be at origin.
    if (tip === this.#opened.base && this.#pushed === undefined) return;
    const isUrgent = signal.aborted && (signal.reason as Stopped).why === "signal";
    const limitMs = isUrgent ? LAST_PUSH_MS : PUSH_MS;
    const limits = signal.aborted ? { limitMs } : { limitMs, signal };
    await pushBranch(git, remote, { branch: request.branchName, tip, ...limits });
    this.#pushed = tip;
  }

  /** The pull request's address; undefined when there is nothing to propose or nobody to propose it to. */
  async propose(): Promise<string | undefined> {
    const { remote, env, request, signal } = this.#parts;
    const forge = openForge(remote, env);
    const into = this.#opened?.defaultBranch;
    const file = this.#tasks?.file;
    if (forge === undefined || into === undefined || file === undefined) return undefined;
    const isProposable = this.#tip !== this.#opened?.base;
    if (!isProposable || !file.stories.some(({ status }) => status === "completed")) return undefined;
    const { title, type } = file.metadata;
    const lines = file.stories.map(
      (story) => `- ${story.id} ${story.title}: ${story.status.replace("_", " ")}`,
    );
    const body = `Stories of \`${file.path}\`:\n\n${lines.join("\n")}\n`;
    return await forge.propose(
      { branch: request.branchName, into, title: `${type}: ${title}`, body },
      signal,
    );
  }

  #hear(event: AgentEvent, budget: Budget): void {
    const { reporter, clock } = this.#parts;
    reporter.usage = budget.usage;
    if (event.type === "text") reporter.say(event.text);
    if (event.type === "toolCall" && event.status === "running") reporter.say(`\n[${event.name}]\n`);
    if (event.type === "usage") reporter.touch();
    const now = clock.now().getTime();
    if (now - this.#scannedAt < SCAN_MS) return;
    this.#scannedAt = now;
    void this.#tellChanged();
  }

  async #tellChanged(): Promise<void> {
    const { git, reporter, log } = this.#parts;
    if (this.#opened === undefined || this.#tip === undefined) return;
    try {
      reporter.changed(await changedPaths(git, { base: this.#opened.base, tip: this.#tip }));
    } catch (thrown) {
      // Of use to whoever watches, and no more than that.
      log(`changed files: ${textOf(thrown)}`);
    }
  }
}

function textOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
