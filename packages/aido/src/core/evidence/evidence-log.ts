import { constants } from "node:fs";
import { open } from "node:fs/promises";
import type { Evidence } from "@aido/sdk";
import { AidoError, type EvidenceEntry, type EvidenceVerdict, toAidoError } from "@aido/sdk/protocol";
import type { Clock } from "../clock.ts";
import type { DataDir } from "../data-dir.ts";
import type { Logger } from "../logger.ts";
import type { EvidenceHeads } from "../store/store.ts";
import type { EvidenceArchive } from "./evidence-archive.ts";
import { EvidenceFile, type UnchainedEntry } from "./evidence-file.ts";
import { canonical, parseLine } from "./evidence-line.ts";
import type { EvidenceSink } from "./evidence-sink.ts";
import { verifyEvidence } from "./verify-evidence.ts";

const SOON_MS = 5;
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
  /** What is told and not written yet, by sandbox. */
  readonly #waiting = new Map<string, UnchainedEntry[]>();
  #timer: NodeJS.Timeout | undefined;

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

  /** Resolves when everything told so far is written. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const sandboxId of [...this.#waiting.keys()]) await this.#write(sandboxId);
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
      await heads.advance(id, (known) => this.#file(id).settle(known));
      const head = await heads.get(id);
      verdicts.push(await verifyEvidence(id, this.#lines(id), head));
    }
    return verdicts;
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
    const waiting = this.#waiting.get(sandboxId);
    if (waiting === undefined) this.#waiting.set(sandboxId, [entry]);
    else waiting.push(entry);
  }

  async #write(sandboxId: string): Promise<void> {
    const { heads, logger } = this.#options;
    const entries = this.#waiting.get(sandboxId);
    if (entries === undefined) return;
    this.#waiting.delete(sandboxId);
    try {
      await heads.advance(sandboxId, (head) => this.#file(sandboxId).append(head, entries));
    } catch (thrown) {
      const { code, message } = toAidoError(thrown);
      const about = entries.map(({ event }) => event).join(", ");
      logger.error({ event: "evidence.append", sandboxId, about, code, message }, "Evidence is lost");
    }
  }

  /** Nothing when the file is gone: that its entries are missing is the verifier's to say. */
  async *#lines(sandboxId: string): AsyncIterable<string> {
    if ((await this.#options.heads.get(sandboxId)) === undefined) throw noEvidence(sandboxId);
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW;
    let file: Awaited<ReturnType<typeof open>>;
    try {
      file = await open(this.#file(sandboxId).path, flags);
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return;
      throw thrown;
    }
    try {
      yield* splitLines(file.createReadStream({ autoClose: false }));
    } finally {
      await file.close();
    }
  }

  #file(sandboxId: string): EvidenceFile {
    if (!ID.test(sandboxId)) throw noEvidence(sandboxId);
    return new EvidenceFile(this.#options.dataDir, sandboxId);
  }
}

/** At line feeds only: an entry's text may hold every other character that some readers break lines at. */
async function* splitLines(chunks: AsyncIterable<Buffer>): AsyncIterable<string> {
  let rest = Buffer.alloc(0);
  for await (const chunk of chunks) {
    rest = Buffer.concat([rest, chunk]);
    for (let end = rest.indexOf(0x0a); end >= 0; end = rest.indexOf(0x0a)) {
      yield rest.subarray(0, end).toString("utf8");
      rest = rest.subarray(end + 1);
    }
  }
  if (rest.length > 0) yield rest.toString("utf8");
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
