import { AidoError } from "@aido/sdk/protocol";
import type { Clock } from "../../clock.ts";
import { AGENT_STORY_ID, type ProgressUpdate, type WorkerMessage } from "../messages/message.ts";
import { MessageFeed } from "../messages/message-feed.ts";
import {
  afterLines,
  afterMessage,
  countStories,
  type WorkerRecord,
  type WorkerUsage,
} from "../records/worker-record.ts";
import type { StoryProgress } from "../state/swarm-state.ts";
import type { SwarmEvent } from "../swarm-event.ts";
import type { StoryStatus } from "../tasks/task-file.ts";
import type { OutputOffsets, WorkerOutput } from "../workers/workers.ts";
import { LogLines } from "./log-lines.ts";

/** Messages of all a worker's work; an adapter that sends more is not one. */
const MOST_STDOUT_BYTES = 256 * 1024 * 1024;

export interface StoryStart {
  readonly id: string;
  readonly status: StoryStatus;
}

/** What a worker's output says, kept in its record and told as events. */
export class WorkerProgress {
  readonly #clock: Clock;
  readonly #emit: (event: SwarmEvent) => void;
  readonly #stories: readonly StoryStart[];
  readonly #known: ReadonlySet<string>;
  #record: WorkerRecord;
  #feed: MessageFeed;
  #log: LogLines;
  #said: LogLines;

  constructor(
    { clock, emit }: { clock: Clock; emit: (event: SwarmEvent) => void },
    record: WorkerRecord,
    stories: readonly StoryStart[],
  ) {
    this.#clock = clock;
    this.#emit = emit;
    this.#record = record;
    this.#stories = stories;
    this.#known = new Set(stories.map(({ id }) => id));
    this.#feed = new MessageFeed(record.stdoutOffset, record.last !== undefined);
    this.#log = new LogLines(clock);
    this.#said = new LogLines(clock);
  }

  get record(): WorkerRecord {
    return this.#record;
  }

  get usage(): WorkerUsage {
    return this.#record.usage;
  }

  get counts(): StoryProgress {
    return countStories(this.#stories.map(({ id, status }) => this.#record.stories[id] ?? status));
  }

  /** Where to read on; what was read of a message that is not whole comes again. */
  reopen(): OutputOffsets {
    const { stdoutOffset, stderrOffset, last } = this.#record;
    this.#feed = new MessageFeed(stdoutOffset, last !== undefined);
    this.#log = new LogLines(this.#clock);
    return { stdoutOffset, stderrOffset };
  }

  /** The output of another container than before, of which nothing is known yet. */
  restart(record: WorkerRecord): void {
    this.#record = record;
    this.reopen();
  }

  note(changes: Partial<Pick<WorkerRecord, "startedAt" | "reason" | "containerId" | "seconds">>): void {
    this.#record = { ...this.#record, ...changes };
  }

  /** True when a story changed. Raises what is wrong with a message; nothing behind it is read. */
  take({ stream, offset, data }: WorkerOutput): boolean {
    if (stream === "stderr") {
      this.#record = { ...this.#record, stderrOffset: offset + data.length };
      this.#tell("log", this.#log.push(data));
      return false;
    }
    if (offset + data.length > MOST_STDOUT_BYTES) {
      throw new AidoError("SWARM_MESSAGE_INVALID", `More than ${MOST_STDOUT_BYTES} bytes of messages`);
    }
    let changed = false;
    for (const { message, offset: end } of this.#feed.push(data)) {
      const before = this.#record;
      this.#record = afterMessage(before, message, { offset: end, known: this.#known });
      changed ||= this.#record.stories !== before.stories;
      this.#show(message, before);
    }
    return changed;
  }

  /** Raises what is wrong with the output as a whole. */
  end(): void {
    this.#tell("log", this.#log.end());
    this.#tell("progress", this.#said.end());
    this.#feed.end();
  }

  #show(message: WorkerMessage, before: WorkerRecord): void {
    if (message.type !== "progress-update") return;
    const { worker, usage, changedFiles } = this.#record;
    this.#showStory(message.payload);
    if (usage !== before.usage) this.#emit({ type: "usage", at: this.#clock.now(), worker, ...usage });
    const paths = changedFiles.slice(before.changedFiles.length);
    if (paths.length > 0) this.#emit({ type: "files", at: this.#clock.now(), worker, paths });
  }

  #showStory({ storyId, status, output }: ProgressUpdate["payload"]): void {
    const { worker } = this.#record;
    if (storyId === AGENT_STORY_ID || !this.#known.has(storyId)) {
      if (output !== "") this.#tell("progress", this.#said.push(Buffer.from(`${output}\n`)));
    } else {
      this.#record = afterLines(this.#record, [`${storyId} ${status}${output === "" ? "" : `: ${output}`}`]);
      this.#emit({ type: "story", at: this.#clock.now(), worker, story: storyId, status, text: output });
    }
  }

  #tell(type: "progress" | "log", lines: readonly string[]): void {
    this.#record = afterLines(this.#record, lines);
    const { worker } = this.#record;
    for (const text of lines) this.#emit({ type, at: this.#clock.now(), worker, text });
  }
}
