import { driveSwarm } from "../../../core/swarm/run/drive-swarm.ts";
import type { CheckedProject } from "../../../core/swarm/start/check-project.ts";
import type { SwarmDeps } from "../../../core/swarm/swarm-deps.ts";
import type { SwarmDone } from "../../../core/swarm/swarm-event.ts";
import { readWorkerLimits } from "../../../core/swarm/workers/worker-limits.ts";
import type { CliContext } from "../../context.ts";
import { note } from "../../output/print.ts";
import { openSwarmView } from "../../output/swarm/open-swarm-view.ts";
import { Interrupt } from "../interrupt.ts";
import type { ProjectSwarm } from "./open-swarm.ts";
import { printWorkers } from "./print-workers.ts";
import type { SwarmChoices } from "./swarm-options.ts";
import { readSwarmRecord, writeSwarmRecord } from "./swarm-record.ts";

const STOP_GRACE_MS = 30_000;

export interface Driven {
  readonly swarm: ProjectSwarm;
  readonly choices: SwarmChoices;
  readonly checked: CheckedProject;
  readonly image: string;
  readonly isResumed: boolean;
}

/** Follows the swarm to its end, or until a signal lets it go on by itself. Whoever calls this holds the lock. */
export async function drive(context: CliContext, deps: SwarmDeps, driven: Driven): Promise<number> {
  const { swarm, choices, checked, image, isResumed } = driven;
  const limits = readWorkerLimits(context.env);
  const { swarmId } = await swarm.state.read();
  const record = await readSwarmRecord(swarm, swarmId);
  const shape = choices.shapeFor(record?.shape);
  const secondsBefore = record?.seconds ?? 0;
  await writeSwarmRecord(swarm, swarmId, { shape, seconds: secondsBefore });
  const view = openSwarmView(context);
  const interrupt = new Interrupt(context);
  let done: SwarmDone;
  try {
    done = await driveSwarm(
      { ...deps, emit: view.show },
      {
        ...shape,
        isResumed,
        secondsBefore,
        onSeconds: (seconds) => writeSwarmRecord(swarm, swarmId, { shape, seconds }),
        plan: choices.planFor(undefined),
        surroundings: {
          repoUrl: checked.repoUrl,
          limits,
          image,
          env: context.env,
          stopGraceMs: STOP_GRACE_MS,
        },
        readTask: swarm.readTask,
      },
      interrupt.signal,
    );
  } finally {
    await view.close();
    interrupt.stop();
  }
  if (!context.globals.json && !done.isInterrupted) await printWorkers(context, await swarm.state.read());
  if (done.isInterrupted) {
    await note(context, "aido: interrupted; workers that run go on without it");
    await note(context, "  aido swarm resume    go on with the swarm");
    await note(context, "  aido swarm stop      end its workers");
    return interrupt.exitCode ?? 130;
  }
  const left = done.results.filter(({ state }) => state !== "completed").length;
  if (left === 0) return 0;
  await note(
    context,
    `${left} of ${done.results.length} not completed: \`aido swarm resume\` goes on with them`,
  );
  return 1;
}
