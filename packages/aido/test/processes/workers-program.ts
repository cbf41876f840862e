import { setTimeout as sleep } from "node:timers/promises";
import { openSwarmWorkers } from "../../src/compose/open-swarm-workers.ts";
import { loadProcessConfig } from "../../src/config/process-config.ts";
import { ExecService } from "../../src/core/exec/exec-service.ts";
import { Supervisor } from "../../src/core/supervisor/supervisor.ts";
import { makeLogger } from "../../src/log/make-logger.ts";
import { startOf } from "../swarm/workers-contract-values.ts";

// Starts the adapter of a worker and follows it, printing the offset behind what it has heard; or is killed on the way:
// `stored` before the supervisor hears of it, `started` before it has its task, `given` before that is written down,
// `over` when the adapter and its container have ended, still before that.
const [dataDir = "", agentPath = "", name = "", script = "", where = ""] = process.argv.slice(2);
const die = (): never => {
  process.kill(process.pid, "SIGKILL");
  throw new Error("killed");
};

const give = ExecService.prototype.giveStdin;
if (where === "stored") Supervisor.prototype.startExec = async () => die();
if (where === "started") ExecService.prototype.giveStdin = async () => die();
if (where === "given") {
  ExecService.prototype.giveStdin = async function (this: ExecService, ...args) {
    await give.apply(this, args);
    return die();
  };
}

if (where === "over") {
  ExecService.prototype.giveStdin = async function (this: ExecService, ...args) {
    await give.apply(this, args);
    const [sandbox, execId] = args;
    await this.wait(sandbox, execId);
    while ((await workers.status(name)).dockerState !== "exited") await sleep(20);
    return die();
  };
}

const { config: known } = loadProcessConfig({ flags: { dataDir, logLevel: "error" } });
const config = { ...known, agentPath };
const { workers } = await openSwarmWorkers({ config, logger: makeLogger(config) });
await workers.startAdapter(name, startOf("script", { SCRIPT: script }));
for await (const event of workers.follow(name, { stdoutOffset: 0, stderrOffset: 0 })) {
  if (event.type === "output") console.log(event.offset + event.data.byteLength);
}
