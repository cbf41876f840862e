import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CLI, DEBIAN_IMAGE, temporaryDirectory } from "../product.mjs";
import { best, median, round } from "../statistics.mjs";

const ROUNDS = 15;

function wholeCommand(command, args, options = {}) {
  const started = performance.now();
  const { status, stderr } = spawnSync(command, args, { ...options, encoding: "utf8" });
  const ms = performance.now() - started;
  if (status !== 0) throw new Error(`${command} ended with ${status}: ${stderr}`);
  return ms;
}

/** `aido --version` against the start of Node itself. */
export async function cliStart() {
  const samples = { ours: [], node: [] };
  for (let index = 0; index < ROUNDS; index++) {
    samples.ours.push(wholeCommand(process.execPath, [CLI, "--version"]));
    samples.node.push(wholeCommand(process.execPath, ["-e", "0"]));
  }
  const ratio = median(samples.ours) / median(samples.node);
  return {
    value: round(median(samples.ours), 1),
    unit: "ms",
    baseline: round(median(samples.node), 1),
    ratio: round(ratio, 2),
    want: "<= 2 times the start of node",
    ok: ratio <= 2,
  };
}

/**
 * `aido run` of a shell file, less the start of Node, against `docker run --rm` of the same: same user, limits,
 * capabilities and mounts. It copies no inputs and keeps no outputs, log or evidence.
 */
export async function runDocker() {
  const directory = temporaryDirectory();
  try {
    const task = join(directory.path, "task.sh");
    writeFileSync(task, "echo hello\n");
    const samples = { ours: [], docker: [], node: [] };
    const ours = ["run", task, "--driver", "docker", "--image", DEBIAN_IMAGE, "--quiet"];
    const mounts = ["inputs", "task", "work", "outputs"].flatMap((name) => {
      const source = join(directory.path, name);
      mkdirSync(source);
      const readOnly = name === "inputs" || name === "task" ? ",readonly" : "";
      return ["--mount", `type=bind,src=${source},dst=/${name}${readOnly}`];
    });
    copyFileSync(task, join(directory.path, "task/task.sh"));
    const theirs = [
      ..."run --rm --network none --memory 512m --memory-swap 512m --cpus 1 --pids-limit 100".split(" "),
      ..."--cap-drop ALL --security-opt no-new-privileges --user 1000:1000 --workdir /work".split(" "),
      ..."--ulimit core=0 --log-driver none".split(" "),
      ...[...mounts, DEBIAN_IMAGE, "/bin/bash", "/task/task.sh"],
    ];
    for (let index = 0; index < ROUNDS + 1; index++) {
      const own = wholeCommand(process.execPath, [CLI, ...ours], { cwd: directory.path });
      const other = wholeCommand("docker", theirs);
      const node = wholeCommand(process.execPath, ["-e", "0"]);
      if (index === 0) continue;
      samples.ours.push(own);
      samples.docker.push(other);
      samples.node.push(node);
    }
    spawnSync(process.execPath, [CLI, "sandbox", "destroy", "--all"], { cwd: directory.path });
    const ratio = (median(samples.ours) - median(samples.node)) / median(samples.docker);
    return {
      value: round(median(samples.ours), 1),
      unit: "ms",
      baseline: round(median(samples.docker), 1),
      node: round(median(samples.node), 1),
      ratio: round(ratio, 3),
      bestRatio: round((best(samples.ours) - best(samples.node)) / best(samples.docker), 3),
      want: "<= 1.25 times docker run",
      ok: ratio <= 1.25,
    };
  } finally {
    directory.remove();
  }
}
