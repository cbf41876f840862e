import type { ExecRecord, SandboxRecord } from "../store/store.ts";
import { ExecFollower } from "./exec-follower.ts";
import { type ExecRecorder, isGone, type RecorderDeps } from "./exec-recorder.ts";
import { recordedSizes } from "./foreign-exec.ts";

type Known = "running" | "ended";

/**
 * Brings records up to date. What the store calls running and nobody here records may have ended with nobody
 * listening: the supervisor knows.
 */
export async function settleExecs(
  deps: RecorderDeps,
  recorder: ExecRecorder,
  sandbox: SandboxRecord,
  execs: readonly ExecRecord[],
): Promise<readonly ExecRecord[]> {
  const own = (exec: ExecRecord) => recorder.own(exec.sandboxId, exec.id);
  const isUnsure = (exec: ExecRecord) => exec.status === "running" && own(exec) === undefined;
  const known = execs.some(isUnsure) ? await ask(deps, sandbox) : undefined;
  return Promise.all(
    execs.map(async (exec) => {
      if (!isUnsure(exec)) return own(exec)?.record() ?? exec;
      const state = known === "gone" ? "ended" : known?.get(exec.id);
      const mayBeRunning = known === undefined || state === "running";
      if (mayBeRunning || (state === undefined && recorder.isYoung(exec))) return withSizes(deps, exec);
      return settle(deps, recorder, sandbox, exec);
    }),
  );
}

/** Undefined when the supervisor cannot be asked now. */
async function ask(
  deps: RecorderDeps,
  sandbox: SandboxRecord,
): Promise<ReadonlyMap<string, Known> | "gone" | undefined> {
  try {
    const listed = await deps.supervisors.get(sandbox).list();
    return new Map(listed.map(({ id, ended }) => [id, ended ? "ended" : "running"]));
  } catch (error) {
    return isGone(error) ? "gone" : undefined;
  }
}

async function settle(
  deps: RecorderDeps,
  recorder: ExecRecorder,
  sandbox: SandboxRecord,
  exec: ExecRecord,
): Promise<ExecRecord> {
  await recorder.takeOver(sandbox, exec);
  const follower = new ExecFollower(deps, recorder, sandbox, exec.id);
  for (;;) {
    const followed = await follower.current();
    if (followed.isEnded()) return followed.record();
    await followed.change();
  }
}

async function withSizes(deps: RecorderDeps, exec: ExecRecord): Promise<ExecRecord> {
  const sizes = await recordedSizes(deps.dataDir.exec(exec.sandboxId, exec.id));
  return { ...exec, stdoutBytes: sizes.stdout, stderrBytes: sizes.stderr };
}
