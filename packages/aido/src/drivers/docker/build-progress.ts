import { clean } from "./translate-docker-error.ts";

interface BuildEvent {
  stream?: string;
  error?: string;
  errorDetail?: { message?: string };
  aux?: { ID?: string };
}

const KEPT_LINES = 40;
const KEPT_CHARACTERS = 400;

/** Reads the engine's account of a build: what it says line by line, which layers it made, how it ended. */
export class BuildProgress {
  readonly #tell: ((step: string) => void) | undefined;
  readonly #said: string[] = [];
  #rest = "";
  #isCached = false;
  /** Ids of layers that were not there before. */
  readonly made: string[] = [];
  error: string | undefined;
  finished = false;

  constructor(tell: ((step: string) => void) | undefined) {
    this.#tell = tell;
  }

  take(line: string): void {
    const event = parse(line);
    if (event?.error !== undefined) this.error = clean(event.errorDetail?.message ?? event.error);
    if (event?.aux?.ID !== undefined) this.finished = true;
    if (event?.stream === undefined) return;
    const lines = (this.#rest + event.stream).split(/\r?\n|\r/);
    this.#rest = (lines.pop() ?? "").slice(0, KEPT_CHARACTERS);
    for (const each of lines) this.#say(clean(each).slice(0, KEPT_CHARACTERS));
  }

  /** The end of what the build said. */
  tail(): string {
    return this.#said.join("\n");
  }

  #say(text: string): void {
    if (text === "") return;
    // What FROM names was there before.
    if (text.startsWith("Step ")) this.#isCached = /^Step \S+ : FROM /i.test(text);
    if (text === "---> Using cache") this.#isCached = true;
    const layer = /^---> ([0-9a-f]{12})$/.exec(text)?.[1];
    if (layer !== undefined && !this.#isCached) this.made.push(layer);
    this.#said.push(text);
    if (this.#said.length > KEPT_LINES) this.#said.shift();
    this.#tell?.(text);
  }
}

function parse(line: string): BuildEvent | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
