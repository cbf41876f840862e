import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createSandbox, runExec, temporaryDirectory, withAido } from "../product.mjs";
import { alternate, median, percentile, round, timed } from "../statistics.mjs";

const FEW = 2_000;
const MANY = 20_000;
const FILES_PER_DIRECTORY = 100;
const WARM_UP = 20;
const ROUNDS = 30;

/**
 * One changed file in a workspace of 20,000, against `git add -A && git commit` on the same tree; and how much of
 * it grows from 2,000 files to 20,000. What the command itself takes is measured without history and left out. `idle` is
 * what history adds to a command that changes nothing.
 */
export async function historyCommit() {
  const few = await measure(FEW);
  const many = await measure(MANY);
  const ratio = many.git / many.ours;
  const growth = many.ours / few.ours;
  return {
    value: round(many.ours),
    unit: "ms",
    p99: round(many.p99),
    baseline: round(many.git),
    ratio: round(ratio, 1),
    growth: round(growth, 2),
    idle: round(many.idle),
    want: ">= 5 times faster than git, < 2 times slower with 10 times the files",
    ok: ratio >= 5 && growth < 2,
  };
}

function measure(files) {
  return withAido("local", async (aido) => {
    const sandbox = await createSandbox(aido, "local", { history: true });
    const run = async (script, history = true) => {
      const { info } = await runExec(aido.execs, sandbox.id, { argv: ["sh", "-c", script], history });
      if (info.exitCode !== 0) throw new Error(`exec ended with ${info.exitCode}`);
    };
    const directories = files / FILES_PER_DIRECTORY;
    await run(
      `for d in $(seq ${directories}); do mkdir d$d; for f in $(seq ${FILES_PER_DIRECTORY}); do echo $d.$f > d$d/f$f; done; done`,
    );
    let count = 0;
    const change = (history) => {
      count += 1;
      return run(`echo ${count} > d${1 + (count % directories)}/f1`, history);
    };
    for (let i = 0; i < WARM_UP; i++) await change(true);
    const git = gitTree(directories);
    try {
      // Without history first: what it changes is recorded with the next, so it goes back and forth on one file.
      const plain = [];
      for (let i = 0; i < ROUNDS; i++) plain.push(await timed(() => run("echo x > d1/f2", false)));
      await run("true");
      const { ours, theirs } = await alternate(ROUNDS, () => change(true), git.commit);
      const idle = await alternate(
        ROUNDS * 3,
        () => run(":"),
        () => run(":", false),
      );
      const base = median(plain);
      return {
        ours: median(ours) - base,
        p99: percentile(ours, 0.99) - base,
        git: median(theirs),
        idle: median(idle.ours) - median(idle.theirs),
      };
    } finally {
      git.remove();
    }
  });
}

/** The same files in a directory of their own, with git's own repository. */
function gitTree(directories) {
  const { path, remove } = temporaryDirectory();
  for (let d = 1; d <= directories; d++) {
    mkdirSync(join(path, `d${d}`));
    for (let f = 1; f <= FILES_PER_DIRECTORY; f++) writeFileSync(join(path, `d${d}/f${f}`), `${d}.${f}\n`);
  }
  const env = {
    PATH: process.env.PATH,
    HOME: "/nonexistent",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_AUTHOR_NAME: "bench",
    GIT_AUTHOR_EMAIL: "bench@example.com",
    GIT_COMMITTER_NAME: "bench",
    GIT_COMMITTER_EMAIL: "bench@example.com",
  };
  const git = (...args) => {
    const { status, stderr } = spawnSync("git", args, { cwd: path, env });
    if (status !== 0) throw new Error(`git ${args[0]}: ${stderr}`);
  };
  git("init", "-q");
  git("config", "gc.auto", "0");
  git("add", "-A");
  git("commit", "-q", "-m", "all");
  let count = 0;
  const commit = async () => {
    count += 1;
    writeFileSync(join(path, `d${1 + (count % directories)}/f1`), `changed ${count}\n`);
    git("add", "-A");
    git("commit", "-q", "-m", "one");
  };
  return { commit, remove };
}
