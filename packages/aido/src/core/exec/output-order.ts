import { closeSync, constants as fs, openSync, readSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { OutputStream } from "@aido/sdk/protocol";

const NAME = "order";
/** Where a stream had got to: six bytes of offset, the stream, and a mark that tells an entry from other bytes. */
const ENTRY_BYTES = 8;
const OFFSET_BYTES = 6;
const MARK = 0xa1;
const STREAMS = ["stdout", "stderr"] as const;
/** As many turns are kept one by one, half a mebibyte of them; from then on one for each stretch of output. */
const EXACT_ENTRIES = 65_536;
const STRETCH_BYTES = 65_536;
const ENTRIES_PER_READ = 1_024;

/** From where on the other stream went on: all of `stream` up to `end` comes before. */
export interface OutputTurn {
  stream: OutputStream;
  end: number;
}

/**
 * In which order an exec's streams were heard, beside its recorded bytes. Made when the second stream speaks; what comes
 * after its last entry is of one stream, so a process that is killed leaves at most an end whose order is not known.
 * Entries carry offsets, so that two recorders of the same exec do no harm.
 */
export class OutputOrder {
  readonly #directory: string;
  readonly #received: Readonly<Record<OutputStream, number>>;
  readonly #noted = { stdout: 0, stderr: 0 };
  #last: OutputStream | undefined;
  #fd: number | undefined;
  #entries = 0;
  #hasFailed = false;

  /** `received` is how far each stream has come, kept by its owner. */
  constructor(directory: string, received: Readonly<Record<OutputStream, number>>) {
    this.#directory = directory;
    this.#received = received;
  }

  /** Before bytes of `stream` are counted as received. */
  hear(stream: OutputStream): void {
    if (stream === this.#last) return;
    this.#last = stream;
    const other = otherThan(stream);
    if (this.#received[other] === 0 || this.#hasFailed || !this.#isDue()) return;
    this.#note(stream);
    this.#note(other);
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }

  #isDue(): boolean {
    if (this.#entries < EXACT_ENTRIES) return true;
    const { stdout, stderr } = this.#received;
    return stdout + stderr - this.#noted.stdout - this.#noted.stderr >= STRETCH_BYTES;
  }

  #note(stream: OutputStream): void {
    const end = this.#received[stream];
    if (end <= this.#noted[stream]) return;
    this.#noted[stream] = end;
    const entry = Buffer.alloc(ENTRY_BYTES);
    entry.writeUIntLE(end, 0, OFFSET_BYTES);
    entry[OFFSET_BYTES] = STREAMS.indexOf(stream);
    entry[OFFSET_BYTES + 1] = MARK;
    try {
      const flags = fs.O_WRONLY | fs.O_CREAT | fs.O_APPEND | fs.O_NOFOLLOW;
      this.#fd ??= openSync(join(this.#directory, NAME), flags, 0o600);
      writeSync(this.#fd, entry);
      this.#entries += 1;
    } catch {
      // The bytes are what counts: without their order one stream is shown after the other.
      this.#hasFailed = true;
    }
  }
}

/** Reads the turns of a recording, oldest first, and later those that came since. */
export class RecordedOrder {
  readonly #path: string;
  #fd: number | undefined;
  #position = 0;
  #block: Buffer = Buffer.alloc(0);
  #isBroken = false;

  constructor(directory: string) {
    this.#path = join(directory, NAME);
  }

  /** The first turn that a reader who has got to `at` has not read through. Undefined when none is known. */
  after(at: Readonly<Record<OutputStream, number>>): OutputTurn | undefined {
    while (!this.#isBroken && (this.#block.length > 0 || this.#fill())) {
      const stream = STREAMS[this.#block[OFFSET_BYTES] ?? STREAMS.length];
      // A disk that was full has left half an entry, and everything behind it is out of step.
      this.#isBroken = stream === undefined || this.#block[OFFSET_BYTES + 1] !== MARK;
      if (stream === undefined || this.#isBroken) break;
      const end = this.#block.readUIntLE(0, OFFSET_BYTES);
      if (end > at[stream]) return { stream, end };
      this.#block = this.#block.subarray(ENTRY_BYTES);
    }
    return undefined;
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }

  #fill(): boolean {
    try {
      this.#fd ??= openSync(this.#path, fs.O_RDONLY | fs.O_NOFOLLOW);
      const block = Buffer.allocUnsafe(ENTRIES_PER_READ * ENTRY_BYTES);
      const bytes = readSync(this.#fd, block, 0, block.length, this.#position);
      const whole = bytes - (bytes % ENTRY_BYTES);
      this.#position += whole;
      this.#block = block.subarray(0, whole);
      return whole > 0;
    } catch {
      return false;
    }
  }
}

function otherThan(stream: OutputStream): OutputStream {
  return stream === "stdout" ? "stderr" : "stdout";
}
