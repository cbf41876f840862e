import type { EvidenceSink } from "../evidence/evidence-sink.ts";
import type { ExecRecord } from "../store/store.ts";
import type { EndFrame } from "../supervisor/frames.ts";
import { END_FLAG } from "../supervisor/protocol.ts";
import type { ExecSpec } from "../supervisor/supervisor.ts";
import type { OwnExec } from "./own-exec.ts";

/** `outputCutOff`: a background child kept an output open beyond the command's end, and its later words are not kept. */
function usage(frame: EndFrame): Readonly<Record<string, unknown>> {
  const outputCutOff = (frame.flags & END_FLAG.cutOff) !== 0;
  return { cpuMs: frame.cpuMs, maxRssBytes: frame.maxRssBytes, ...(outputCutOff ? { outputCutOff } : {}) };
}

/** Tells the evidence what ran. Values of variables are never told. */
export class ExecEvidence {
  readonly #sink: EvidenceSink;
  readonly #telling = new Set<Promise<void>>();

  constructor(sink: EvidenceSink) {
    this.#sink = sink;
  }

  started(exec: ExecRecord, spec: ExecSpec): void {
    this.#sink.appendSoon(exec.sandboxId, "exec.started", {
      execId: exec.id,
      argv: exec.argv,
      cwd: spec.cwd === "" ? undefined : spec.cwd,
      user: spec.user === undefined ? undefined : `${spec.user.uid}:${spec.user.gid}`,
      envNames: spec.env.map((pair) => pair.slice(0, pair.indexOf("="))),
    });
  }

  ended(exec: ExecRecord, own: OwnExec, frame: EndFrame | undefined): void {
    const telling = this.#ended(exec, own, frame);
    this.#telling.add(telling);
    void telling.finally(() => this.#telling.delete(telling));
  }

  async close(): Promise<void> {
    while (this.#telling.size > 0) await Promise.all([...this.#telling]);
  }

  async #ended(exec: ExecRecord, own: OwnExec, frame: EndFrame | undefined): Promise<void> {
    const { stdout, stderr } = own.recording;
    this.#sink.appendSoon(exec.sandboxId, "exec.ended", {
      execId: exec.id,
      // The process that started it may have died before it could tell.
      argv: own.isStartTold ? undefined : exec.argv,
      status: exec.status,
      exitCode: exec.exitCode ?? null,
      signal: exec.signal ?? null,
      durationMs: (exec.endedAt?.getTime() ?? 0) - exec.startedAt.getTime(),
      stdoutBytes: exec.stdoutBytes,
      stderrBytes: exec.stderrBytes,
      // That it ended is told also of a recording that cannot be read.
      stdoutSha256: await stdout.sha256().catch(() => null),
      stderrSha256: await stderr.sha256().catch(() => null),
      ...(frame === undefined ? {} : usage(frame)),
    });
  }
}
