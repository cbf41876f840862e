import { constants, createReadStream } from "node:fs";
import type { Evidence } from "@aido/sdk";
import {
  AidoError,
  type EvidenceEntry,
  type EvidenceVerdict,
  isAidoError,
  toAidoError,
} from "@aido/sdk/protocol";
import type { Clock } from "../clock.ts";
import type { DataDir } from "../data-dir.ts";
import type { Logger } from "../logger.ts";
import type { EvidenceHeads } from "../store/store.ts";
import type { EvidenceArchive } from "./evidence-archive.ts";
import { EvidenceFile, openLog, type UnchainedEntry } from "./evidence-file.ts";
import { canonical, parseLine } from "./evidence-line.ts";
import type { EvidenceSink } from "./evidence-sink.ts";
import { type Unwritten, UnwrittenEntries } from "./unwritten-entries.ts";
import { verifyEvidence } from "./verify-evidence.ts";

const SOON_MS = 20;
const RETRY_MS = 5_000;
/** Many times the longest entry. A longer line is read as an empty one, which is none either. */
const MAX_LINE_BYTES = 64 * 1024 ** 2;
const ID = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/;

export interface EvidenceLogOptions {
  readonly heads: EvidenceHeads;
  readonly dataDir: DataDir;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Who this process acts for when nobody else is named. */
  readonly actor: string;
}

/** What happened in each sandbox, one hash-chained line per event, kept after the sandbox is gone. */
export class EvidenceLog implements Evidence, EvidenceSink, EvidenceArchive {
  readonly #options: EvidenceLogOptions;
  readonly #unwritten = new UnwrittenEntries();
  #timer: NodeJS.Timeout | undefined;
  #retry: NodeJS.Timeout | undefined;

  constructor(options: EvidenceLogOptions) {
    this.#options = options;
  }

  async append(
    sandboxId: string,
    event: string,
    detail?: Readonly<Record<string, unknown>>,
    actor?: string,
  ): Promise<void> {
    this.#wait(sandboxId, event, detail, actor);
    await this.#write(sandboxId);
  }

  /** Entries that come close together cost one write. Killed before that, this process has told nothing of them. */
  appendSoon(sandboxId: string, event: string, detail: Readonly<Record<string, unknown>>): void {
    this.#wait(sandboxId, event, detail);
    this.#timer ??= setTimeout(() => void this.flush(), SOON_MS);
  }

  /** Resolves when everything told so far is written, or cannot be now. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    clearTimeout(this.#retry);
    this.#timer = undefined;
    this.#retry = undefined;
    for (const sandboxId of this.#unwritten.sandboxIds) await this.#write(sandboxId);
  }

  async archive(sandboxId: string): Promise<void> {
    await this.#write(sandboxId);
    await this.#options.heads.advance(sandboxId, () => {
      this.#file(sandboxId).archive();
      return undefined;
    });
  }

  async *read(sandboxId: string): AsyncIterable<EvidenceEntry> {
    await this.#write(sandboxId);
    for await (const line of this.#lines(sandboxId)) {
      const entry = parseLine(line);
      if (entry === undefined) {
        throw new AidoError(
          "EVIDENCE_BROKEN",
          `The evidence of sandbox ${sandboxId} has an unreadable line`,
          {
            hint: `\`aido evidence verify ${sandboxId}\` says which.`,
            details: { id: sandboxId },
          },
        );
      }
      yield entry;
    }
  }

  async verify(sandboxId?: string): Promise<readonly EvidenceVerdict[]> {
    const { heads } = this.#options;
    await this.flush();
    const ids = sandboxId === undefined ? await heads.ids() : [sandboxId];
    const verdicts: EvidenceVerdict[] = [];
    for (const id of ids) {
      if ((await heads.get(id)) === undefined) throw noEvidence(id);
      verdicts.push(withUnwritten(await this.#verdict(id), this.#unwritten.count(id)));
    }
    return verdicts;
  }

  async #verdict(sandboxId: string): Promise<EvidenceVerdict> {
    const { heads } = this.#options;
    try {
      await heads.advance(sandboxId, (known) => this.#file(sandboxId).settle(known));
      return await verifyEvidence(sandboxId, this.#lines(sandboxId), await heads.get(sandboxId));
    } catch (thrown) {
      // One that cannot be read is no reason to be silent about the others.
      if (!isAidoError(thrown, "EVIDENCE_BROKEN")) throw thrown;
      const problem = { line: 1, problem: "unreadable", message: thrown.message } as const;
      return { sandboxId, entries: 0, ok: false, problems: [problem] };
    }
  }

  #wait(
    sandboxId: string,
    event: string,
    detail: Readonly<Record<string, unknown>> = {},
    actor = this.#options.actor,
  ): void {
    const kept = canonical(detail) as Record<string, unknown>;
    const timestamp = this.#options.clock.now().toISOString();
    const entry = { timestamp, event, actor, ...(Object.keys(kept).length === 0 ? {} : { detail: kept }) };
    this.#unwritten.add(sandboxId, entry);
  }

  async #write(sandboxId: string): Promise<void> {
    const { heads } = this.#options;
    const unwritten = this.#unwritten.take(sandboxId);
    if (unwritten === undefined) return;
    let isInFile = false;
    try {
      await heads.advance(sandboxId, (head) => {
        const next = this.#file(sandboxId).append(head, this.#withLoss(unwritten));
        isInFile = true;
        return next;
      });
    } catch (thrown) {
      // Whoever writes next takes over whole lines that the store was not told of.
      if (!isInFile) this.#keep(sandboxId, unwritten, toAidoError(thrown));
    }
  }

  #keep(sandboxId: string, unwritten: Unwritten, { code, message }: AidoError): void {
    const lost = this.#unwritten.giveBack(sandboxId, unwritten);
    this.#options.logger.error(
      { event: "evidence.append", sandboxId, code, message, entries: this.#unwritten.count(sandboxId), lost },
      lost > 0 ? "Evidence is lost" : "Evidence cannot be written now; it is kept and tried again",
    );
    // A process with nothing else to do does not stay for it: closing tries once more.
    this.#retry ??= setTimeout(() => void this.flush(), RETRY_MS).unref();
  }

  /** That something is missing stands where it is missing. */
  #withLoss({ kept, lost, fresh }: Unwritten): readonly UnchainedEntry[] {
    if (lost === 0) return [...kept, ...fresh];
    const timestamp = this.#options.clock.now().toISOString();
    return [...kept, { timestamp, event: "evidence.lost", actor: "aido", detail: { count: lost } }, ...fresh];
  }

  /** Nothing when the file is gone: that its entries are missing is the verifier's to say. */
  async *#lines(sandboxId: string): AsyncIterable<string> {
    if ((await this.#options.heads.get(sandboxId)) === undefined) throw noEvidence(sandboxId);
    let fd: number;
    try {
      fd = openLog(sandboxId, this.#file(sandboxId).path, constants.O_RDONLY);
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return;
      throw thrown;
    }
    yield* splitLines(createReadStream("", { fd }));
  }

  #file(sandboxId: string): EvidenceFile {
    if (!ID.test(sandboxId)) throw noEvidence(sandboxId);
    return new EvidenceFile(this.#options.dataDir, sandboxId);
  }
}

/** At line feeds only: an entry's text may hold every other character that some readers break lines at. */
async function* splitLines(chunks: AsyncIterable<Buffer>): AsyncIterable<string> {
  let parts: Buffer[] = [];
  let size = 0;
  const keep = (part: Buffer) => {
    size += part.length;
    if (size <= MAX_LINE_BYTES) parts.push(part);
    else parts = [];
  };
  const take = () => {
    const line = Buffer.concat(parts).toString("utf8");
    parts = [];
    size = 0;
    return line;
  };
  for await (const chunk of chunks) {
    let at = 0;
    for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, at)) {
      keep(chunk.subarray(at, end));
      at = end + 1;
      yield take();
    }
    keep(chunk.subarray(at));
  }
  if (size > 0) yield take();
}

/** What is in this process alone is no part of the record yet. */
function withUnwritten(verdict: EvidenceVerdict, count: number): EvidenceVerdict {
  if (count === 0) return verdict;
  const line = verdict.entries + 1;
  const message = `${count} ${count === 1 ? "entry waits" : "entries wait"} to be written`;
  return { ...verdict, ok: false, problems: [...verdict.problems, { line, problem: "unwritten", message }] };
}

function noEvidence(sandboxId: string): AidoError {
  return new AidoError(
    "RESOURCE_NOT_FOUND",
    `There is no evidence of a sandbox ${JSON.stringify(sandboxId)}`,
    {
      hint: "Evidence is kept by id; `aido evidence verify` lists every id.",
    },
  );
}
