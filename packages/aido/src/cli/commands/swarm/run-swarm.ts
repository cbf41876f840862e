import { randomUUID } from "node:crypto";
import { AidoError } from "@aido/sdk/protocol";
import { beginSwarm, findSwarm, newFiles, type SwarmMode } from "../../../core/swarm/start/begin-swarm.ts";
import { checkBranches } from "../../../core/swarm/start/check-branches.ts";
import { type CheckedProject, checkProject } from "../../../core/swarm/start/check-project.ts";
import { chooseTaskFiles } from "../../../core/swarm/start/choose-task-files.ts";
import { findChanged } from "../../../core/swarm/start/find-changed.ts";
import { findForeign } from "../../../core/swarm/start/find-foreign.ts";
import { refuseUnsaved } from "../../../core/swarm/start/refuse-unsaved.ts";
import {
  isActive,
  NO_CONTAINER,
  type SwarmContainer,
  type SwarmState,
} from "../../../core/swarm/state/swarm-state.ts";
import type { SwarmDeps } from "../../../core/swarm/swarm-deps.ts";
import type { TaskFile } from "../../../core/swarm/tasks/task-file.ts";
import { SystemClock } from "../../../core/system-clock.ts";
import type { CliContext } from "../../context.ts";
import { note, warn } from "../../output/print.ts";
import { printable } from "../../output/printable.ts";
import { interruptible } from "../interrupt.ts";
import { leftOutText } from "../swarm-tasks.ts";
import { ask, canAsk, taskFileQuestion } from "./ask-task-files.ts";
import { detach } from "./detach.ts";
import { drive } from "./drive.ts";
import { findImage } from "./find-image.ts";
import { ProjectSwarm } from "./open-swarm.ts";
import { readChoices, type SwarmChoices, type WorkerFlags } from "./swarm-options.ts";
import { warnOfSecrets } from "./warn-of-secrets.ts";

export interface RunSwarmFlags extends WorkerFlags {
  file?: string;
  files?: string;
  all?: boolean;
  force?: boolean;
  append?: boolean;
  detach?: boolean;
  yes?: boolean;
}

interface Prepared {
  readonly swarm: ProjectSwarm;
  readonly choices: SwarmChoices;
  readonly checked: CheckedProject;
  readonly image: string;
  readonly files: readonly TaskFile[];
}

/** Task files to workers to branches. */
export async function runSwarm(
  context: CliContext,
  argv: readonly string[],
  flags: RunSwarmFlags,
): Promise<number> {
  const mode = modeOf(flags);
  const choices = readChoices(context, flags, argv);
  let lock: AsyncDisposable | undefined;
  try {
    // A signal before anything runs takes all of it back; from then on it is the driving that handles one.
    return await interruptible(context, async (signal, release) => {
      const swarm = new ProjectSwarm(context, { dir: flags.dir, signal });
      const checked = await checkProject(swarm.project, { env: context.env, signal });
      const files = await chooseFiles(context, swarm, flags);
      await warnOfVersions(context, swarm, { files, checked, signal });
      lock = await swarm.tryLock(signal);
      if (lock === undefined)
        return await joinOther(context, swarm, { files, mode, choices, checked, signal });
      return await swarm.withWorkers(async (deps) => {
        const ready = await prepare(context, deps, { swarm, choices, checked, files, mode, flags, signal });
        release();
        if (!flags.detach) return await drive(context, deps, { ...ready, isResumed: false });
        await lock?.[Symbol.asyncDispose]();
        lock = undefined;
        return await detach(context, swarm, ready);
      });
    });
  } finally {
    await lock?.[Symbol.asyncDispose]();
  }
}

function modeOf({ force, append }: RunSwarmFlags): SwarmMode {
  if (force && append) {
    throw new AidoError("VALIDATION_ERROR", "--force and --append do not go together", {
      hint: "--force ends the swarm before, --append adds to it.",
    });
  }
  return force ? "force" : append ? "append" : "new";
}

async function chooseFiles(
  context: CliContext,
  swarm: ProjectSwarm,
  flags: RunSwarmFlags,
): Promise<readonly TaskFile[]> {
  const listed = (flags.files ?? "").split(",").map((name) => name.trim());
  const named = [...(flags.file === undefined ? [] : [flags.file]), ...listed.filter((name) => name !== "")];
  const leftOut: string[] = [];
  const files = await chooseTaskFiles({
    project: swarm.project,
    cwd: context.cwd,
    named,
    all: (flags.all ?? false) || ((flags.yes ?? false) && named.length === 0),
    onLeftOut: (path) => leftOut.push(path),
    ask: taskFileQuestion(context),
  });
  for (const path of leftOut) await warn(context, leftOutText(path));
  const open = files.filter(({ stories }) =>
    stories.some(({ status }) => status !== "completed" && status !== "skipped"),
  );
  for (const { path } of files.filter((file) => !open.includes(file)))
    await warn(context, `${printable(path)}: all of its stories are done; it is left out`);
  if (open.length > 0) return open;
  throw new AidoError("VALIDATION_ERROR", "There is nothing to do: all stories are done", {
    hint: "`aido swarm-tasks` lists them.",
  });
}

/** What workers would find at origin that is not what their user may think. */
async function warnOfVersions(
  context: CliContext,
  swarm: ProjectSwarm,
  { files, checked, signal }: Pick<Preparing, "files" | "checked" | "signal">,
): Promise<void> {
  const surroundings = { env: context.env, signal };
  const { defaultBranch } = checked;
  const paths = files.map(({ path }) => path);
  const branches = files.map(({ metadata }) => metadata.branchName);
  const [changed, foreign] = await Promise.all([
    findChanged(swarm.project, paths, surroundings),
    findForeign(swarm.project, branches, { ...surroundings, defaultBranch }),
  ]);
  for (const path of changed)
    await warn(
      context,
      `${printable(path)} has changes that are not committed; its worker sees the version that is at origin. Commit and push it`,
    );
  for (const { branch, commits } of foreign) {
    const path = files.find(({ metadata }) => metadata.branchName === branch)?.path ?? "";
    await warn(
      context,
      `${printable(path)}: metadata.branchName: ${branch} is at origin with ${commits === 1 ? "a commit" : `${commits} commits`} that no worker made; its worker goes on from there. Set another metadata.branchName to leave it alone`,
    );
  }
}

interface Preparing {
  readonly swarm: ProjectSwarm;
  readonly choices: SwarmChoices;
  readonly checked: CheckedProject;
  readonly files: readonly TaskFile[];
  readonly mode: SwarmMode;
  readonly flags: RunSwarmFlags;
  readonly signal: AbortSignal;
}

/** Everything that can be refused is, before an image is made and before the swarm is written down. */
async function prepare(context: CliContext, deps: SwarmDeps, preparing: Preparing): Promise<Prepared> {
  const { swarm, choices, checked, mode, flags, signal } = preparing;
  const before = await findSwarm(deps, mode, signal);
  const files = mode === "append" ? await withoutActive(context, preparing.files, before) : preparing.files;
  if (before !== undefined && mode !== "force")
    await refuseUnsaved(deps, before, (entry) => mode === "new" || isOf(entry, files));
  checkBranches(files, { ...checked, entries: mode === "append" ? (before?.containers ?? []) : [] });
  const plan = choices.planFor(undefined);
  await deps.workers.checkRuntime(plan.isolation, signal);
  for (const warning of checked.warnings) await warn(context, printable(warning));
  await warnOfSecrets(context, plan);
  if (mode === "force") await confirmForce(context, before, flags);
  const image =
    plan.image ??
    (await findImage(context, { ...checked, project: swarm.project, build: flags.build ?? true, signal }));
  signal.throwIfAborted();
  await beginSwarm(deps, { mode, files, plan, branches: checked, swarmId: randomUUID() });
  return { swarm, choices, checked, image, files: preparing.files };
}

const isOf = ({ taskFilePath }: SwarmContainer, files: readonly TaskFile[]) =>
  files.some(({ path }) => path === taskFilePath);

async function withoutActive(
  context: CliContext,
  files: readonly TaskFile[],
  before: SwarmState | undefined,
): Promise<readonly TaskFile[]> {
  const fresh = newFiles(files, before);
  for (const { path } of files.filter((file) => !fresh.includes(file)))
    await note(context, `${printable(path)} is in the swarm already`);
  return fresh;
}

async function confirmForce(
  context: CliContext,
  before: SwarmState | undefined,
  flags: RunSwarmFlags,
): Promise<void> {
  const active = before?.containers.filter(isActive).length ?? 0;
  if (active === 0 || flags.yes || !canAsk(context)) return;
  const answer = await ask(context, `End ${active} worker${active === 1 ? "" : "s"} and begin anew? [y/N] `);
  if (!/^y(es)?$/i.test(answer)) throw new AidoError("CANCELLED", "The swarm before was left as it is");
}

/** Another process runs this swarm: it takes up what is added, and nothing else can be done beside it. */
async function joinOther(
  context: CliContext,
  swarm: ProjectSwarm,
  { files, mode, choices, checked, signal }: Omit<Preparing, "swarm" | "flags">,
): Promise<number> {
  if (mode !== "append") {
    await using _lock = await swarm.lock(signal);
    throw new AidoError("SWARM_ACTIVE", "Another aido ran this swarm until just now", { hint: "Try again." });
  }
  return await swarm.withWorkers(async (deps) => {
    const before = await swarm.state.read();
    const fresh = await withoutActive(context, files, before);
    await refuseUnsaved(deps, before, (entry) => isOf(entry, fresh));
    const plan = choices.planFor(undefined);
    await deps.workers.checkRuntime(plan.isolation, signal);
    if (fresh.length === 0) return 0;
    await beginSwarm(deps, { mode, files: fresh, plan, branches: checked, swarmId: randomUUID() });
    const isTaken = await isTakenUp(swarm, fresh, signal);
    await using lock = isTaken ? undefined : await swarm.lookLock(signal);
    if (lock !== undefined) {
      await warn(context, "The other aido has ended meanwhile; `aido swarm resume` begins what was added");
      return 1;
    }
    const more = isTaken ? "" : ", where it waits until others have ended";
    await note(
      context,
      `Added ${fresh.length} to the swarm that another aido runs${more}; see \`aido swarm status\``,
    );
    return 0;
  });
}

const TAKE_UP_MS = 5000;
const LOOK_MS = 250;

/** Whoever runs the swarm looks for new workers every few seconds. False when none of these was begun by then, or nobody runs it. */
async function isTakenUp(
  swarm: ProjectSwarm,
  files: readonly TaskFile[],
  signal: AbortSignal,
): Promise<boolean> {
  const clock = new SystemClock();
  const end = clock.now().getTime() + TAKE_UP_MS;
  while (clock.now().getTime() < end) {
    const { containers } = await swarm.state.read();
    const added = containers.filter((entry) => isOf(entry, files));
    if (added.some(({ containerId, status }) => containerId !== NO_CONTAINER || status !== "pending"))
      return true;
    await using lock = await swarm.lookLock(signal);
    if (lock !== undefined) return false;
    await clock.sleep(LOOK_MS, signal);
  }
  return false;
}
