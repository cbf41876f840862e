import { AidoError } from "@aido/sdk/protocol";
import { orAborted } from "../supervisor/time-limit.ts";
import { ByteSource } from "./byte-source.ts";
import { brokenScan, readRecord, type ScanRecord } from "./scan-records.ts";
import type { WorkspaceReader } from "./workspace-scanner.ts";

const PART = { end: 0, record: 1, content: 2, gone: 3, everything: 4 } as const;
const FIXED_BYTES = 45;
const MAX_TEXT_BYTES = 1024 * 1024 + 4096;
/** Code in the sandbox can stop the tool; then a scan has to do. */
const ANSWER_LIMIT_MS = 5_000;
const START_LIMIT_MS = 20_000;

export interface WatchAnswer {
  /** Events were lost or something cannot be watched: a scan must tell what changed. */
  everything: boolean;
  gone: string[];
  records: ScanRecord[];
}

/** A run of the tool `watch` that is asked what changed since it was asked before. */
export class WorkspaceWatch {
  readonly #questions = new Questions();
  readonly #stop = new AbortController();
  readonly #source: ByteSource;

  private constructor(reader: WorkspaceReader) {
    const output = reader.tool(["watch", "sync"], {
      stdin: this.#questions,
      signal: this.#stop.signal,
      isLasting: true,
    });
    this.#source = new ByteSource(output, () => new AidoError("CONTAINER_LOST", "The watch has ended"));
  }

  /** Resolves when whatever changes from now on will be told. */
  static async start(reader: WorkspaceReader, signal?: AbortSignal): Promise<WorkspaceWatch> {
    const watch = new WorkspaceWatch(reader);
    try {
      const [first] = await watch.#limited(watch.#source.take(1), START_LIMIT_MS, signal);
      if (first !== PART.end) throw brokenScan();
      return watch;
    } catch (thrown) {
      watch.abort();
      throw thrown;
    }
  }

  /** Everything that was done before this call is in the answer. After a failure the watch is of no use any more. */
  async ask(signal?: AbortSignal): Promise<WatchAnswer> {
    this.#questions.put();
    try {
      return await this.#limited(this.#read(), ANSWER_LIMIT_MS, signal);
    } catch (thrown) {
      this.abort();
      throw thrown;
    }
  }

  /** Lets the tool end by itself. */
  close(): void {
    this.#questions.end();
  }

  abort(): void {
    this.#stop.abort(new AidoError("CANCELLED", "The watch is not needed any more"));
    this.#questions.end();
  }

  async #read(): Promise<WatchAnswer> {
    const answer: WatchAnswer = { everything: false, gone: [], records: [] };
    for (;;) {
      const [part] = await this.#source.take(1);
      if (part === PART.end) return answer;
      if (part === PART.everything) answer.everything = true;
      else if (part === PART.gone) answer.gone.push((await this.#text()).toString("latin1", 4));
      else if (part === PART.record) answer.records.push(await this.#record());
      else if (part === PART.content) {
        const record = await this.#record();
        answer.records.push({ ...record, content: (await this.#text()).subarray(4) });
      } else throw brokenScan();
    }
  }

  async #record(): Promise<ScanRecord> {
    const fixed = await this.#source.take(FIXED_BYTES);
    const bytes = Buffer.concat([fixed, await this.#text(), await this.#text()]);
    const read = readRecord(bytes, 0);
    if (read === undefined) throw brokenScan();
    return read.record;
  }

  /** With its length before it. */
  async #text(): Promise<Buffer> {
    const length = await this.#source.take(4);
    if (length.readUInt32LE(0) > MAX_TEXT_BYTES) throw brokenScan();
    return Buffer.concat([length, await this.#source.take(length.readUInt32LE(0))]);
  }

  async #limited<T>(work: Promise<T>, limitMs: number, signal: AbortSignal | undefined): Promise<T> {
    const limit = new AbortController();
    const timer = setTimeout(
      () => limit.abort(new AidoError("DEADLINE_EXCEEDED", "The watch does not answer")),
      limitMs,
    );
    const onAbort = () => limit.abort(signal?.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      return await orAborted(work, limit.signal);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    }
  }
}

/** Standard input of the tool: one byte for each question. */
class Questions implements AsyncIterable<Uint8Array> {
  #waiting = 0;
  #isEnded = false;
  #wake: () => void = () => undefined;

  put(): void {
    this.#waiting += 1;
    this.#wake();
  }

  end(): void {
    this.#isEnded = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    while (!this.#isEnded) {
      if (this.#waiting > 0) {
        this.#waiting -= 1;
        yield new Uint8Array([63]);
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}
