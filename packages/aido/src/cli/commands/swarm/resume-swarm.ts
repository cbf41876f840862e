import { prepareResume } from "../../../core/swarm/run/prepare-resume.ts";
import { type CheckedProject, checkProject } from "../../../core/swarm/start/check-project.ts";
import { findCarried } from "../../../core/swarm/start/find-carried.ts";
import { isActive } from "../../../core/swarm/state/swarm-state.ts";
import type { CliContext } from "../../context.ts";
import { note, warn } from "../../output/print.ts";
import { interruptible } from "../interrupt.ts";
import { drive } from "./drive.ts";
import { findImage } from "./find-image.ts";
import { ProjectSwarm } from "./open-swarm.ts";
import { printWorkers } from "./print-workers.ts";
import { readChoices, type WorkerFlags } from "./swarm-options.ts";
import { warnOfSecrets } from "./warn-of-secrets.ts";

/** Goes on with a swarm: what runs is followed again, what failed or was stopped is begun anew, what waits is begun. */
export async function resumeSwarm(
  context: CliContext,
  given: readonly string[],
  flags: WorkerFlags,
): Promise<number> {
  const choices = readChoices(context, flags);
  let ready: { swarm: ProjectSwarm; checked: CheckedProject; image: string } | undefined;
  let lock: AsyncDisposable | undefined;
  try {
    const code = await interruptible(context, async (signal) => {
      const swarm = new ProjectSwarm(context, { dir: flags.dir, signal });
      const named = given.map((name) => swarm.nameOf(name));
      // Before anything is made: without a swarm, or with one that cannot be read, there is nothing to resume.
      await swarm.state.read();
      const checked = await checkProject(swarm.project, { env: context.env, signal });
      lock = await swarm.lock(signal);
      const carried = await findCarried(swarm.project, { env: context.env, signal });
      if (carried)
        await warn(
          context,
          "The repository has .aimi/swarm in it; how its workers were run is not taken from there",
        );
      const planFor = carried ? () => choices.planFor(undefined) : choices.planFor;
      const state = await swarm.withWorkers((deps) =>
        prepareResume(deps, { named, planFor, isCarried: carried, readTask: swarm.readTask, signal }),
      );
      const waiting = state.containers.filter(({ status }) => status === "pending");
      if (!state.containers.some(isActive)) {
        await note(context, "Every worker has ended; there is nothing to go on with");
        await printWorkers(context, state);
        return state.containers.every(({ status }) => status === "completed") ? 0 : 1;
      }
      if (waiting.length > 0) await warnOfSecrets(context, choices.planFor(undefined));
      const records = await Promise.all(
        waiting.map(({ containerName }) => swarm.records.read(state.swarmId, containerName)),
      );
      const build = (flags.build ?? true) && records.some((record) => record?.plan.image === undefined);
      const image = await findImage(context, { ...checked, project: swarm.project, build, signal });
      ready = { swarm, checked, image };
      return 0;
    });
    if (ready === undefined) return code;
    const { swarm, checked, image } = ready;
    return await swarm.withWorkers((deps) =>
      drive(context, deps, { swarm, choices, checked, image, isResumed: true }),
    );
  } finally {
    await lock?.[Symbol.asyncDispose]();
  }
}
