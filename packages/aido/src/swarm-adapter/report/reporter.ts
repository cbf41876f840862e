import type { Clock } from "../../core/clock.ts";
import {
  AGENT_STORY_ID,
  type AgentUsage,
  type CompletionStatus,
  type ProgressUpdate,
  type TaskRequest,
  UNKNOWN_CONTAINER_ID,
  UNKNOWN_SWARM_ID,
  type WorkerMessage,
} from "../../core/swarm/messages/message.ts";
import { formatMessage, parseMessage } from "../../core/swarm/messages/parse-message.ts";
import type { StoryStatus } from "../../core/swarm/tasks/task-file.ts";
import { ChangedFiles } from "./changed-files.ts";
import { fitErrors } from "./fit-errors.ts";
import { firstChars, lastChars, plainText } from "./fit-text.ts";
import type { Scrubber } from "./scrubber.ts";

const AGENT_UPDATE_MS = 2_000;
const MAX_OUTPUT = 2_000;
const MAX_PENDING = 64 * 1024;
/** What may wait for a reader; beyond it stories are told without what was said of them. */
const MAX_WAITING = 1024 * 1024;

export interface ReporterOptions {
  /** Resolves when the line was taken. Only the agent's progress and the end wait for that, the work does not. */
  readonly write: (line: string) => Promise<void>;
  readonly clock: Clock;
  readonly scrubber: Scrubber;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The adapter's one voice on standard output: progress, then exactly one last message, all within the limits. */
export class Reporter {
  usage: AgentUsage | undefined;
  readonly #options: ReporterOptions;
  readonly #changed = new ChangedFiles();
  readonly #over = new AbortController();
  #swarmId: string;
  #containerId: string;
  #pending = "";
  #isDue = false;
  #isTelling = false;
  #toldAt = Number.NEGATIVE_INFINITY;
  #sent: Promise<void> = Promise.resolve();
  #waiting = 0;

  constructor(options: ReporterOptions) {
    this.#options = options;
    this.#swarmId = this.#usable("swarmId", options.env["SWARM_ID"]) ?? UNKNOWN_SWARM_ID;
    this.#containerId = this.#usable("containerId", options.env["CONTAINER_ID"]) ?? UNKNOWN_CONTAINER_ID;
  }

  get isOver(): boolean {
    return this.#over.signal.aborted;
  }

  /** What the environment does not say is as in the request. */
  identify({ swarmId, containerId }: Pick<TaskRequest, "swarmId" | "containerId">): void {
    if (this.#swarmId === UNKNOWN_SWARM_ID) this.#swarmId = swarmId;
    if (this.#containerId === UNKNOWN_CONTAINER_ID) this.#containerId = containerId;
  }

  /** Told in its turn, whenever somebody reads: there may be nobody for days. */
  story(storyId: string, status: StoryStatus, output: string): void {
    if (this.isOver) return;
    // Told later it would pass for the next story's; what counts of it is in the output.
    if (status !== "in_progress") this.#pending = "";
    const said = this.#waiting > MAX_WAITING ? "" : firstChars(this.#clean(output), MAX_OUTPUT);
    this.#send(this.#progress(storyId, status, said)).catch(() => undefined);
  }

  /** What the agent says: told with what came since, at most once in two seconds. */
  say(text: string): void {
    this.#pending = (this.#pending + plainText(text)).slice(-MAX_PENDING);
    this.touch();
  }

  /** Paths of the worktree that were changed; each is told once. */
  changed(paths: readonly string[]): void {
    if (this.#changed.add(paths.map((path) => this.#options.scrubber.scrub(path)))) this.touch();
  }

  /** There is news to tell in the next update. */
  touch(): void {
    this.#isDue = true;
    if (this.#isTelling || this.isOver) return;
    this.#isTelling = true;
    this.#tell()
      .catch(() => undefined)
      .finally(() => {
        this.#isTelling = false;
      });
  }

  async complete(
    status: CompletionStatus,
    prUrl: string | undefined,
    errors: readonly string[],
  ): Promise<void> {
    const told = fitErrors(errors.map((error) => this.#clean(error)));
    await this.#finish(() => this.#envelope("completion", { status, prUrl: prUrl ?? null, errors: told }));
  }

  async fail(code: string, message: string): Promise<void> {
    const told = firstChars(this.#clean(message), MAX_OUTPUT);
    await this.#finish(() => this.#envelope("error", { code, message: told }));
  }

  async #finish(last: () => WorkerMessage): Promise<void> {
    if (this.isOver) return;
    this.#over.abort();
    while (this.#changed.size > 0) await this.#send(this.#progress(AGENT_STORY_ID, "in_progress", ""));
    await this.#send(last());
  }

  async #tell(): Promise<void> {
    const { clock, scrubber } = this.#options;
    while (this.#isDue && !this.isOver) {
      const waitMs = this.#toldAt + AGENT_UPDATE_MS - clock.now().getTime();
      if (waitMs > 0) await clock.sleep(waitMs, this.#over.signal);
      this.#isDue = false;
      const { ready, held } = scrubber.scrubPiece(this.#pending);
      this.#pending = held;
      this.#toldAt = clock.now().getTime();
      await this.#send(this.#progress(AGENT_STORY_ID, "in_progress", lastChars(ready.trim(), MAX_OUTPUT)));
    }
  }

  #progress(storyId: string, status: StoryStatus, output: string): ProgressUpdate {
    const changedFiles = this.#changed.take();
    return this.#envelope("progress-update", {
      storyId,
      status,
      output,
      ...(this.usage === undefined ? {} : { usage: this.usage }),
      ...(changedFiles.length === 0 ? {} : { changedFiles }),
    });
  }

  #envelope<Message extends WorkerMessage>(type: Message["type"], payload: Message["payload"]): Message {
    const timestamp = this.#options.clock.now().toISOString();
    return { type, timestamp, swarmId: this.#swarmId, containerId: this.#containerId, payload } as Message;
  }

  /** One after the other, in the order they were asked for. */
  #send(message: WorkerMessage): Promise<void> {
    const line = formatMessage(message);
    this.#waiting += line.length;
    this.#sent = this.#sent
      .then(() => this.#options.write(line))
      .then(() => {
        this.#waiting -= line.length;
      });
    return this.#sent;
  }

  #clean(text: string): string {
    return this.#options.scrubber.scrub(plainText(text));
  }

  /** By the reader's own rules; a value that breaks them would make every message unreadable. */
  #usable(field: "swarmId" | "containerId", value: string | undefined): string | undefined {
    if (value === undefined) return undefined;
    const ids = { swarmId: UNKNOWN_SWARM_ID, containerId: UNKNOWN_CONTAINER_ID, [field]: value };
    const timestamp = new Date(0).toISOString();
    try {
      const probe = { type: "error", timestamp, ...ids, payload: { code: "UNKNOWN_ERROR", message: "" } };
      parseMessage(JSON.stringify(probe));
      return value;
    } catch {
      return undefined;
    }
  }
}
