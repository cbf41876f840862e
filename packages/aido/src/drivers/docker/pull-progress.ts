import { clean } from "./translate-docker-error.ts";

interface PullEvent {
  id?: string;
  status?: string;
  error?: string;
  errorDetail?: { message?: string };
  progressDetail?: { current?: number; total?: number };
}

/** Sums up the engine's many progress events as one line per finished layer. */
export class PullProgress {
  readonly #image: string;
  readonly #tell: ((step: string) => void) | undefined;
  readonly #layers = new Map<string, { bytes: number; done: boolean }>();
  #told = "";
  /** What the engine gave as the reason of failure. */
  error: string | undefined;
  /** Whether the engine said that the image is complete. */
  finished = false;

  constructor(image: string, tell: ((step: string) => void) | undefined) {
    this.#image = image;
    this.#tell = tell;
    this.#say(`Pulling ${image}`);
  }

  take(line: string): void {
    const event = parse(line);
    if (event === undefined) return;
    if (event.error !== undefined) {
      this.error = clean(event.errorDetail?.message ?? event.error);
    } else if (event.status !== undefined) {
      this.#takeStatus(event.status, event);
    }
  }

  #takeStatus(status: string, event: PullEvent): void {
    if (status.startsWith("Status: ")) {
      this.finished = true;
      this.#say(`Pulled ${this.#image}`);
      return;
    }
    if (event.id === undefined || status.startsWith("Pulling from")) return;
    const layer = this.#layers.get(event.id) ?? { bytes: 0, done: false };
    if (status === "Downloading") layer.bytes = event.progressDetail?.total ?? layer.bytes;
    if (status === "Pull complete" || status === "Already exists") layer.done = true;
    this.#layers.set(event.id, layer);
    const layers = [...this.#layers.values()];
    const done = layers.filter((each) => each.done).length;
    if (done === 0) return;
    const bytes = layers.reduce((sum, each) => sum + each.bytes, 0);
    const size = bytes === 0 ? "" : `, ${(bytes / 1e6).toFixed(1)} MB`;
    this.#say(`Pulling ${this.#image}: ${done} of ${layers.length} layers${size}`);
  }

  #say(step: string): void {
    if (step === this.#told) return;
    this.#told = step;
    this.#tell?.(step);
  }
}

function parse(line: string): PullEvent | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
