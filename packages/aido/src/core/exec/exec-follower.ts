import { AidoError } from "@aido/sdk/protocol";
import type { ExecRecord, SandboxRecord } from "../store/store.ts";
import type { ListedExec } from "../supervisor/frames.ts";
import { type ExecRecorder, isGone, type RecorderDeps } from "./exec-recorder.ts";
import { EndedExec, type FollowedExec } from "./followed-exec.ts";
import { ForeignExec } from "./foreign-exec.ts";
import type { OwnExec } from "./own-exec.ts";

const STALL_CHECK_MS = 1_000;

/**
 * Follows one exec for one reader. Prefers our own recording, takes over one that nobody here has yielded, and
 * otherwise follows the files of the process that took it from us, until that process falls behind the supervisor.
 */
export class ExecFollower {
  readonly #deps: RecorderDeps;
  readonly #recorder: ExecRecorder;
  readonly #sandbox: SandboxRecord;
  readonly #execId: string;
  #own: OwnExec | undefined;
  #foreign: ForeignExec | undefined;
  #checkedAt = 0;
  #sizesAtCheck: { stdout: number; stderr: number } | undefined;

  constructor(deps: RecorderDeps, recorder: ExecRecorder, sandbox: SandboxRecord, execId: string) {
    this.#deps = deps;
    this.#recorder = recorder;
    this.#sandbox = sandbox;
    this.#execId = execId;
  }

  /** Who is to be asked now; without waiting while we record it ourselves. */
  current(): FollowedExec | Promise<FollowedExec> {
    const own = this.#own;
    if (own !== undefined && !own.isDetached) return own;
    this.#own = this.#recorder.known(this.#sandbox.id, this.#execId);
    return this.#own ?? this.#find();
  }

  async #find(): Promise<FollowedExec> {
    if (this.#foreign?.isEnded() === true) return this.#foreign;
    if (this.#foreign !== undefined && !(await this.#hasStalled(this.#foreign))) return this.#foreign;
    const record = await this.#deps.store.execs.get(this.#sandbox.id, this.#execId);
    if (record === undefined) throw execNotFound(this.#sandbox.id, this.#execId);
    if (record.status !== "running") return new EndedExec(record);
    const isTheirs = this.#foreign === undefined && this.#recorder.hasYielded(this.#sandbox.id, this.#execId);
    if (!isTheirs) {
      this.#foreign = undefined;
      return this.#recorder.takeOver(this.#sandbox, record);
    }
    return this.#watch(record);
  }

  async #watch(record: ExecRecord): Promise<FollowedExec> {
    const { clock, dataDir, store } = this.#deps;
    const directory = dataDir.exec(record.sandboxId, record.id);
    this.#foreign = await ForeignExec.open({ clock, execs: store.execs, directory }, record);
    this.#checkedAt = clock.now().getTime();
    return this.#foreign;
  }

  /** True when the supervisor has had more to say for a whole period in which the other process wrote nothing. */
  async #hasStalled(foreign: ForeignExec): Promise<boolean> {
    const now = this.#deps.clock.now().getTime();
    if (now - this.#checkedAt < STALL_CHECK_MS) return false;
    this.#checkedAt = now;
    const sizes = foreign.sizes();
    const before = this.#sizesAtCheck;
    this.#sizesAtCheck = { ...sizes };
    if (before === undefined || before.stdout !== sizes.stdout || before.stderr !== sizes.stderr)
      return false;
    const known = await this.#ask();
    if (known === undefined || known === "gone") return known === "gone";
    const exec = known.find(({ id }) => id === this.#execId);
    return (
      exec === undefined || exec.ended || exec.stdoutTotal > sizes.stdout || exec.stderrTotal > sizes.stderr
    );
  }

  /** Undefined when the supervisor cannot be asked now. */
  async #ask(): Promise<readonly ListedExec[] | "gone" | undefined> {
    try {
      return await this.#deps.supervisors.get(this.#sandbox).list();
    } catch (error) {
      return isGone(error) ? "gone" : undefined;
    }
  }
}

export function execNotFound(sandboxId: string, execId: string): AidoError {
  return new AidoError("EXECUTION_NOT_FOUND", `Sandbox ${sandboxId} has no exec ${execId}`, {
    details: { sandboxId, execId },
  });
}
