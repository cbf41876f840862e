import { toAidoError } from "@aido/sdk/protocol";
import { shownName } from "../history/git-names.ts";
import { scanRecords } from "../history/scan-records.ts";
import type { SandboxRecord } from "../store/store.ts";
import type { SandboxDeps } from "./sandbox-deps.ts";

const LIMIT_MS = 2_000;
const MAX_TOLD = 100;
/** Longer ones are counted, not named. */
const MAX_NAME_BYTES = 1_024;
/** The kernel's stamps lag behind its clock by up to 10 ms. */
const LAG_MS = 20;

/** Tells the evidence which files a sandbox without a history has changed since it was started, before it ends. */
export class ChangedFiles {
  readonly #deps: Pick<SandboxDeps, "supervisors" | "evidence" | "logger">;

  constructor(deps: Pick<SandboxDeps, "supervisors" | "evidence" | "logger">) {
    this.#deps = deps;
  }

  /** One look of bounded length and size. Whatever goes wrong with it, the sandbox's end does not wait for more. */
  async tell(record: SandboxRecord): Promise<void> {
    if (record.state !== "running" || record.history || record.startedAt === undefined) return;
    const sinceNs = BigInt(record.startedAt.getTime() - LAG_MS) * 1_000_000n;
    const found = { files: [] as string[], filesTotal: 0 };
    let isPartial = false;
    try {
      for await (const { type, ctimeNs, path } of scanRecords(this.#scan(record, sinceNs))) {
        if (type === "directory" || ctimeNs < sinceNs) continue;
        found.filesTotal += 1;
        const isNamed = found.files.length < MAX_TOLD && path.length <= MAX_NAME_BYTES;
        if (isNamed) found.files.push(shownName(path));
      }
    } catch (thrown) {
      isPartial = true;
      this.#failed(record, thrown);
    }
    if (found.filesTotal === 0) return;
    const detail = {
      files: found.files.sort(),
      filesTotal: found.filesTotal,
      ...(isPartial ? { isPartial } : {}),
    };
    await this.#deps.evidence
      .append(record.id, "files.changed", detail)
      .catch((thrown: unknown) => this.#failed(record, thrown));
  }

  #failed({ id }: SandboxRecord, thrown: unknown): void {
    const { code, message } = toAidoError(thrown);
    const fields = { event: "files.changed", sandboxId: id, code, message };
    this.#deps.logger.debug(fields, "What a sandbox has changed could not be told completely");
  }

  async *#scan(record: SandboxRecord, sinceNs: bigint): AsyncGenerator<Uint8Array> {
    const supervisor = this.#deps.supervisors.get(record);
    const options = { signal: AbortSignal.timeout(LIMIT_MS) };
    const tool = supervisor.tool(["scan", record.workdir, ".", String(sinceNs)], options);
    yield* tool.stdout;
    await tool.done;
  }
}
