import type { Files } from "@aido/sdk";
import { AidoError, type FileEvent, type FileInfo } from "@aido/sdk/protocol";
import type { Activity, ActivityGuard } from "../activity/activity.ts";
import type { EvidenceSink } from "../evidence/evidence-sink.ts";
import type { SandboxResolver } from "../sandbox/sandbox-resolver.ts";
import type { Supervisor } from "../supervisor/supervisor.ts";
import type { Supervisors } from "../supervisor/supervisors.ts";
import { orAborted } from "../supervisor/time-limit.ts";
import type { ToolOptions, ToolRun } from "../supervisor/tool-run.ts";
import { readFileEvents } from "./read-file-events.ts";
import { readRecords, toFileInfo } from "./record-reader.ts";
import { toSandboxPath } from "./sandbox-path.ts";

/** What one list holds in memory; hostile code can make any number of files. */
const MAX_LISTED = 200_000;
const DIRECTORY_MODE = "755";

export interface FileServiceDeps {
  supervisors: Supervisors;
  sandboxes: SandboxResolver;
  evidence: EvidenceSink;
  activity: Activity;
  /** Until what was done before is in the history: a change made now belongs to what comes after. */
  settled?: ((sandboxId: string) => Promise<void> | undefined) | undefined;
}

interface Place {
  sandboxId: string;
  supervisor: Supervisor;
  workdir: string;
}

/** Files of sandboxes. All work is done inside, by the supervisor as the sandbox's user: no path is opened here. */
export class FileService implements Files {
  readonly #deps: FileServiceDeps;

  constructor(deps: FileServiceDeps) {
    this.#deps = deps;
  }

  async *read(
    sandbox: string,
    path: string,
    signal?: AbortSignal,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    yield* this.#stream("read", sandbox, path, signal);
  }

  async write(
    sandbox: string,
    path: string,
    content: Uint8Array | AsyncIterable<Uint8Array>,
    options: { mode?: number; signal?: AbortSignal } = {},
  ): Promise<void> {
    const counted = countBytes(content);
    const mode = options.mode === undefined ? "-" : toOctal(options.mode);
    const place = await this.#toChange(sandbox, path, options.signal);
    using _use = this.#use(place);
    const run = this.#tool("write", place, path, [mode], { stdin: counted.content, signal: options.signal });
    await run.done;
    await this.#tell(place, "files.write", { path, bytes: counted.bytes() });
  }

  async stat(sandbox: string, path: string, signal?: AbortSignal): Promise<FileInfo> {
    const run = await this.#run("stat", sandbox, path, [], { signal });
    for await (const record of readRecords(run.stdout)) return toFileInfo(record, path);
    await run.done;
    throw new AidoError("FILE_NOT_FOUND", `There is no ${path}`);
  }

  async list(
    sandbox: string,
    path: string,
    options: { recursive?: boolean; signal?: AbortSignal } = {},
  ): Promise<readonly FileInfo[]> {
    const { recursive, signal } = options;
    const run = await this.#run("list", sandbox, path || ".", [recursive === true ? "1" : "0"], { signal });
    const entries: FileInfo[] = [];
    for await (const record of readRecords(run.stdout)) {
      if (entries.length === MAX_LISTED) {
        throw new AidoError(
          "PAYLOAD_TOO_LARGE",
          `There are over ${MAX_LISTED} entries beneath ${path || "."}`,
          {
            hint: "List its directories one by one.",
          },
        );
      }
      entries.push(toFileInfo(record, record.path));
    }
    await run.done;
    return entries;
  }

  async move(sandbox: string, from: string, to: string, signal?: AbortSignal): Promise<void> {
    const place = await this.#toChange(sandbox, from, signal);
    const source = toSandboxPath(place.workdir, from);
    const target = toSandboxPath(place.workdir, to);
    // One root for both: where they differ, the workdir's name is put before the relative one.
    const isMixed = source.root !== target.root;
    const whole = (one: typeof source) =>
      isMixed && one.root !== "/" ? `${one.root}/${one.path}` : one.path;
    const root = isMixed ? "/" : source.root;
    await place.supervisor.tool(["move", root, whole(source), whole(target)], { signal }).done;
    await this.#tell(place, "files.move", { from, to });
  }

  async remove(sandbox: string, path: string, signal?: AbortSignal): Promise<void> {
    const place = await this.#toChange(sandbox, path, signal);
    await this.#tool("remove", place, path, [], { signal }).done;
    await this.#tell(place, "files.remove", { path });
  }

  async mkdir(sandbox: string, path: string, signal?: AbortSignal): Promise<void> {
    const place = await this.#toChange(sandbox, path, signal);
    await this.#tool("mkdir", place, path, [DIRECTORY_MODE], { signal }).done;
    await this.#tell(place, "files.mkdir", { path });
  }

  async *watch(
    sandbox: string,
    path: string,
    signal?: AbortSignal,
    onReady?: () => void,
  ): AsyncGenerator<FileEvent, void, undefined> {
    const place = await this.#place(sandbox, path || ".", signal);
    using _use = this.#use(place);
    const run = this.#tool("watch", place, path || ".", [], { signal, isLasting: true });
    yield* readFileEvents(run.stdout, onReady);
    await run.done;
  }

  async *tarOut(
    sandbox: string,
    path: string,
    signal?: AbortSignal,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    yield* this.#stream("tar", sandbox, path || ".", signal);
  }

  async tarIn(
    sandbox: string,
    path: string,
    archive: AsyncIterable<Uint8Array>,
    signal?: AbortSignal,
  ): Promise<void> {
    const counted = countBytes(archive);
    const place = await this.#toChange(sandbox, path || ".", signal);
    using _use = this.#use(place);
    await this.#tool("untar", place, path || ".", [], { stdin: counted.content, signal }).done;
    await this.#tell(place, "files.untar", { path: path || ".", bytes: counted.bytes() });
  }

  async *#stream(
    tool: string,
    sandbox: string,
    path: string,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const place = await this.#place(sandbox, path, signal);
    using _use = this.#use(place);
    const run = this.#tool(tool, place, path, [], { signal });
    yield* run.stdout;
    await run.done;
  }

  /** While bytes go in or out the sandbox is in use, however slowly they go. */
  #use(place: Place): ActivityGuard {
    return this.#deps.activity.begin(place.sandboxId, "files");
  }

  async #run(
    tool: string,
    sandbox: string,
    path: string,
    rest: readonly string[] = [],
    options: ToolOptions = {},
  ): Promise<ToolRun> {
    return this.#tool(tool, await this.#place(sandbox, path, options.signal), path, rest, options);
  }

  #tool(
    tool: string,
    place: Place,
    path: string,
    rest: readonly string[] = [],
    options: ToolOptions = {},
  ): ToolRun {
    const at = toSandboxPath(place.workdir, path);
    return place.supervisor.tool([tool, at.root, at.path, ...rest], options);
  }

  /** Checks the path before anything is asked of the sandbox. */
  async #place(sandbox: string, path: string, signal: AbortSignal | undefined): Promise<Place> {
    toSandboxPath("/", path);
    const record = await this.#deps.sandboxes.resolveRunning(sandbox, { signal });
    return { sandboxId: record.id, supervisor: this.#deps.supervisors.get(record), workdir: record.workdir };
  }

  async #toChange(sandbox: string, path: string, signal: AbortSignal | undefined): Promise<Place> {
    const place = await this.#place(sandbox, path, signal);
    const settled = this.#deps.settled?.(place.sandboxId);
    if (settled !== undefined) await orAborted(settled, signal);
    return place;
  }

  async #tell(place: Place, event: string, detail: Readonly<Record<string, unknown>>): Promise<void> {
    await this.#deps.evidence.append(place.sandboxId, event, detail);
  }
}

function countBytes(content: Uint8Array | AsyncIterable<Uint8Array>): {
  content: Uint8Array | AsyncIterable<Uint8Array>;
  bytes: () => number;
} {
  if (content instanceof Uint8Array) return { content, bytes: () => content.byteLength };
  let total = 0;
  const counted = async function* () {
    for await (const chunk of content) {
      total += chunk.byteLength;
      yield chunk;
    }
  };
  return { content: counted(), bytes: () => total };
}

function toOctal(mode: number): string {
  if (!Number.isInteger(mode) || mode < 0 || mode > 0o7777) {
    throw new AidoError("VALIDATION_ERROR", `${mode} is no file mode`, {
      hint: "Use a number such as 0o644.",
    });
  }
  return mode.toString(8);
}
