import { batchExec } from "./batch.mjs";
import { cliStart, runDocker } from "./command.mjs";
import { createLocal } from "./create.mjs";
import { execDocker, execLocal } from "./exec.mjs";
import { historyCommit } from "./history.mjs";
import { burst, memory } from "./many.mjs";
import { scaleRecords } from "./scale.mjs";
import { burstPool, createPool, execHttp, execThroughput } from "./server.mjs";
import { stream } from "./stream.mjs";
import { swarmOverhead, swarmStart } from "./swarm.mjs";
import { swarmState } from "./swarm-state.mjs";
import { gcTick, resumeHot, resumeTiers } from "./tiers.mjs";

/** In the order in which they are printed. */
export const measures = {
  "exec.docker": execDocker,
  "exec.local": execLocal,
  "create.local": createLocal,
  "run.docker": runDocker,
  "cli.start": cliStart,
  "history.commit": historyCommit,
  stream,
  burst,
  memory,
  "create.pool": createPool,
  "burst.pool": burstPool,
  "exec.http": execHttp,
  "exec.throughput": execThroughput,
  "scale.records": scaleRecords,
  "batch.exec": batchExec,
  "resume.hot": resumeHot,
  "resume.tiers": resumeTiers,
  "gc.tick": gcTick,
  "swarm.state": swarmState,
  "swarm.overhead": swarmOverhead,
  "swarm.start": swarmStart,
};
