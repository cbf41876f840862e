import type { OutputStream } from "@aido/sdk/protocol";
import type { ExecRecord, SandboxRecord } from "../store/store.ts";
import { orAborted } from "../supervisor/time-limit.ts";
import type { FollowedExec } from "./followed-exec.ts";
import type { Recording } from "./recording.ts";

/** An exec that this process records. */
export class OwnExec implements FollowedExec {
  readonly sandbox: SandboxRecord;
  readonly recording: Recording;
  #record: ExecRecord;
  #isEnded = false;
  #isDetached = false;
  /** Whether this process has told the evidence of its start. */
  isStartTold = false;
  /** Whether the watch of its workspace, if there is one, had nothing to tell at its end. */
  isQuiet = false;

  constructor(sandbox: SandboxRecord, record: ExecRecord, recording: Recording) {
    this.sandbox = sandbox;
    this.#record = record;
    this.recording = recording;
  }

  sizes(): Readonly<Record<OutputStream, number>> {
    return { stdout: this.recording.stdout.written, stderr: this.recording.stderr.written };
  }

  record(): ExecRecord {
    if (this.#isEnded) return this.#record;
    const { stdout, stderr } = this.sizes();
    return { ...this.#record, stdoutBytes: stdout, stderrBytes: stderr };
  }

  isEnded(): boolean {
    return this.#isEnded;
  }

  async change(signal?: AbortSignal): Promise<void> {
    if (!this.#isEnded && !this.#isDetached) await orAborted(this.recording.change(), signal);
  }

  /** Another process records it from now on. */
  detach(): void {
    this.#isDetached = true;
    this.recording.wake();
  }

  get isDetached(): boolean {
    return this.#isDetached;
  }

  end(record: ExecRecord): void {
    this.#record = record;
    this.#isEnded = true;
    this.recording.wake();
  }
}
