// Plays a made-up swarm on the terminal that it is started on, with the built product: play-board.mjs <pid file> <play>
import { writeFileSync } from "node:fs";
import { forwardSignals } from "../../dist/cli/commands/forward-signals.js";
import { FdSink } from "../../dist/cli/output/fd-sink.js";
import { openSwarmView } from "../../dist/cli/output/swarm/open-swarm-view.js";
import { ProcessSignals } from "../../dist/cli/process-signals.js";
import { PLAYS } from "../../dist/cli/testing/scripted-swarm.js";

const [, , pidFile, play] = process.argv;
const signals = new ProcessSignals(process);
const stdout = new FdSink(1, () => (process.stdout.isTTY ? process.stdout.columns || 80 : undefined));
const swarm = PLAYS[play]();
const now = swarm.now;
const globals = { json: false, quiet: false, verbose: false };
const view = openSwarmView({
  globals,
  stdout,
  stderr: stdout,
  env: { ...process.env },
  signals,
  now: () => now,
});
for (const event of swarm.events) view.show(event);

const finish = new Promise((resolve) => process.on("SIGUSR1", resolve));
process.on("SIGUSR2", () => process.exit(3));
// As a command does: the first Ctrl-C asks for an end, which never comes here, and the second one ends the process.
forwardSignals(signals, () => writeFileSync(`${pidFile}.asked`, ""));
const alive = setInterval(() => undefined, 1000);
writeFileSync(pidFile, String(process.pid));
await finish;
clearInterval(alive);
await view.close();
process.exit(0);
