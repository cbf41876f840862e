import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeFakeHost } from "../../../test/run/fake-host.ts";
import { fileOf, stepOf } from "../../../test/run/run-harness.ts";

/** Lets a process do `count` things and then be dead. */
function lifeOf(count: number) {
  let left = count;
  let isOver: () => void = () => undefined;
  const over = new Promise<void>((resolve) => {
    isOver = resolve;
  });
  const mayGoOn = () => {
    left -= 1;
    if (left < 0) isOver();
    return left >= 0;
  };
  return { mayGoOn, over };
}

/** Dies at each effect in turn, until one life is long enough to see the run to its end. */
async function dieEverywhere({ isPipeline = false, isAgain = false }): Promise<number> {
  for (let count = 0; ; count++) {
    await using host = await makeFakeHost();
    const steps = isPipeline ? [stepOf("a", "t.sh"), stepOf("b", "t.sh")] : [];
    const script = "out hello\nwrite /outputs/file x\n";
    const { id } = await host.up({ steps }, { tasks: isPipeline ? [fileOf("t.sh", script)] : [] });
    const task = isPipeline ? undefined : fileOf("t.sh", script);
    if (isAgain) await host.run({ sandbox: id, task: fileOf("first.sh", "out first\n") });
    const { mayGoOn, over } = lifeOf(count);
    const victim = host.mortal(mayGoOn);
    const lived = victim.runs.start({ sandbox: id, task }).then(async () => await victim.runs.wait(id));
    lived.catch(() => undefined);
    const isDead = await Promise.race([over.then(() => true), lived.then(() => false)]);
    await victim.die();
    if (!isDead) return count;
    await checkRecovery(host, id, `death after ${count} effects`);
  }
}

async function checkRecovery(
  host: Awaited<ReturnType<typeof makeFakeHost>>,
  id: string,
  when: string,
): Promise<void> {
  await host.sandboxes.reconcile();
  await expect
    .poll(
      async () => {
        await host.runs.recover();
        return (await host.store.runs.get(id))?.status;
      },
      { message: when, timeout: 5_000 },
    )
    .not.toBe("running");
  const row = await host.store.runs.get(id);
  const record = JSON.parse(await readFile(join(host.dataDir.sandbox(id), "run.json"), "utf8")) as {
    status: string;
  };
  expect(record.status, when).toBe(row?.status);
  if (row?.status !== "pending") {
    const summary = await host.runs.summary(id);
    expect(summary?.status, when).toBe(row?.status);
    if (summary?.status === "completed") {
      const isFirst = summary.task === "first.sh";
      expect(summary.outputFiles, when).toEqual(isFirst ? [] : ["file"]);
      const output = await host.read(id, "outputs/stdout.log");
      expect(output, when).toMatch(isFirst ? /^first\n$/ : /^(hello\n)+$/);
    }
    expect(await host.driver.list(), when).toEqual([]);
  }
  const again = await host.run({ sandbox: id, task: fileOf("again.sh", "out again\n") });
  expect(again.status, when).toBe("completed");
  expect(await host.driver.list(), when).toEqual([]);
  await host.sandboxes.destroy(id);
}

test("wherever aido dies while it makes a sandbox for runs, nothing unusable stays", async () => {
  for (let count = 0; ; count++) {
    await using host = await makeFakeHost();
    const { mayGoOn, over } = lifeOf(count);
    const victim = host.mortal(mayGoOn);
    const lived = victim.up({}, { inputs: [fileOf("a", "x")] });
    const isDead = await Promise.race([over.then(() => true), lived.then(() => false)]);
    await victim.die();
    await host.sandboxes.reconcile();
    await host.runs.recover();
    const [left, ...more] = await host.sandboxes.list();
    expect(more).toEqual([]);
    if (left !== undefined) {
      const summary = await host.run({ task: fileOf("t.sh", "read /inputs/a\n") });
      expect(summary.status, `death after ${count} effects`).toBe("completed");
    }
    if (isDead) continue;
    expect(left).toBeDefined();
    expect(count).toBeGreaterThan(5);
    return;
  }
}, 60_000);

test("wherever aido dies while it makes a sandbox and starts its task, nothing unusable stays", async () => {
  for (let count = 0; ; count++) {
    await using host = await makeFakeHost();
    const { mayGoOn, over } = lifeOf(count);
    const victim = host.mortal(mayGoOn);
    const start = { task: fileOf("t.sh", "out hello\nwrite /outputs/file x\n") };
    const lived = victim.up({}, { start, implicit: true }).then(async ({ id }) => await victim.runs.wait(id));
    lived.catch(() => undefined);
    const isDead = await Promise.race([over.then(() => true), lived.then(() => false)]);
    await victim.die();
    await host.sandboxes.reconcile();
    await host.runs.recover();
    const [left, ...more] = await host.sandboxes.list();
    expect(more).toEqual([]);
    // What was told to nobody is gone; a run that had begun is finished.
    if (left === undefined) expect(await host.driver.list(), `death after ${count} effects`).toEqual([]);
    else await checkRecovery(host, left.id, `death after ${count} effects`);
    if (isDead) continue;
    expect(left).toBeDefined();
    expect(count).toBeGreaterThan(20);
    return;
  }
}, 120_000);

test("wherever aido dies in a run, the next process finishes it, leaves nothing behind and can run again", async () => {
  expect(await dieEverywhere({})).toBeGreaterThan(15);
}, 120_000);

test("S0-92 wherever aido dies in a pipeline, the next process finishes it and can run again", async () => {
  expect(await dieEverywhere({ isPipeline: true })).toBeGreaterThan(25);
}, 120_000);

test("wherever aido dies in the second run of a sandbox, what is told of it is one run's results", async () => {
  expect(await dieEverywhere({ isAgain: true })).toBeGreaterThan(15);
  expect(await dieEverywhere({ isAgain: true, isPipeline: true })).toBeGreaterThan(25);
}, 120_000);
