import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { docker } from "../engine.mjs";
import { BUSYBOX_IMAGE } from "../product.mjs";
import { median, round, timed } from "../statistics.mjs";
import { RATE, SwarmProject, withWorkerImage } from "../swarm-project.mjs";

const WORKERS = 4;
const ROUNDS = 5;
const WATCH_MS = 20_000;
const START_LIMIT_MS = 60_000;
/** Of the times in /proc: 100 a second on every Linux. */
const TICK_MS = 10;

/** From `aido swarm` to all of four workers running, against one; and what the engine itself takes for as many containers. */
export function swarmStart() {
  return withWorkerImage(async () => {
    const samples = { one: [], four: [], engineOne: [], engineFour: [] };
    for (let index = 0; index < ROUNDS; index++) {
      samples.one.push(await startOf(1));
      samples.four.push(await startOf(WORKERS));
      samples.engineOne.push(await engineStartOf(1));
      samples.engineFour.push(await engineStartOf(WORKERS));
    }
    const ratio = median(samples.four) / median(samples.one);
    return {
      value: round(median(samples.four), 0),
      unit: "ms",
      baseline: round(median(samples.one), 0),
      ratio: round(ratio, 2),
      engine: { four: round(median(samples.engineFour), 0), one: round(median(samples.engineOne), 0) },
      engineRatio: round(median(samples.engineFour) / median(samples.engineOne), 2),
      want: "4 workers run after at most 1.5 times what one takes",
      ok: ratio <= 1.5,
    };
  });
}

async function startOf(workers) {
  const project = new SwarmProject(workers);
  try {
    return await project.untilRunning(workers);
  } finally {
    project.remove();
  }
}

/** A network, a container and its start for each, all at once and with nothing else. */
async function engineStartOf(count) {
  const networks = [];
  const containers = [];
  const make = async (index) => {
    const name = `aido-bench-${process.pid}-${index}`;
    const network = await docker.createNetwork({ Name: name, Driver: "bridge" });
    networks.push(network);
    const container = await docker.createContainer({
      Image: BUSYBOX_IMAGE,
      Cmd: ["/bin/sleep", "600"],
      HostConfig: { NetworkMode: name, LogConfig: { Type: "none" } },
    });
    containers.push(container);
    await container.start();
  };
  try {
    return await timed(() => Promise.all(Array.from({ length: count }, (_, index) => make(index))));
  } finally {
    for (const container of containers) await container.remove({ force: true });
    for (const network of networks) await network.remove();
  }
}

/** The processor that the orchestrator takes, its board on a terminal included, while four workers stream. */
export function swarmOverhead() {
  return withWorkerImage(async () => {
    const project = new SwarmProject(WORKERS);
    // A terminal of its own: `script` makes one, and `exec` leaves nothing between it and the orchestrator.
    const command = ["exec", process.execPath, ...project.argv].join(" ");
    const terminal = spawn("script", ["-qfec", command, "/dev/null"], {
      cwd: project.path,
      env: project.env,
      stdio: ["pipe", "pipe", "inherit"],
    });
    const closed = once(terminal, "close");
    let drawn = "";
    terminal.stdout.on("data", (data) => {
      drawn = (drawn + data).slice(-1_000_000);
    });
    try {
      await untilDrawn(() => drawn, `${WORKERS} running`);
      const pid = onlyChild(terminal.pid);
      drawn = "";
      const before = cpuMs(pid);
      const ms = await timed(() => delay(WATCH_MS));
      const used = cpuMs(pid) - before;
      const share = (used / ms) * 100;
      // A board that stands still, or workers that have ended, would be cheap.
      const frames = drawn.split("\u001b[H").length - 1;
      const isWatched = drawn.includes(`${WORKERS} running`) && frames > WATCH_MS / 1000;
      return {
        value: round(share, 2),
        unit: "% of a core",
        baseline: 5,
        ratio: round(share / 5, 2),
        frames,
        perWorker: `${RATE.messages} messages and ${RATE.logLines} log lines a second`,
        want: "< 5 % of a core while 4 workers stream, board included",
        ok: share < 5 && isWatched,
      };
    } finally {
      process.kill(onlyChild(terminal.pid), "SIGINT");
      await closed;
      project.stop();
      project.remove();
    }
  });
}

async function untilDrawn(drawn, text) {
  const end = performance.now() + START_LIMIT_MS;
  while (!drawn().includes(text)) {
    if (performance.now() > end) throw new Error(`the board does not show ${text}: ${drawn().slice(-500)}`);
    await delay(100);
  }
}

function onlyChild(pid) {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ")[0]);
}

/** Of the process and of those that it waited for. */
function cpuMs(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /, "")
    .split(" ");
  const [user, system, childUser, childSystem] = fields.slice(11, 15).map(Number);
  return (user + system + childUser + childSystem) * TICK_MS;
}
