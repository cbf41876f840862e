import { expect, test } from "vitest";
import { type ExecBed, type FakeDriver, fakeBed, SANDBOX, until } from "../../../test/exec/exec-bed.ts";

const start = async (bed: ExecBed<FakeDriver>, argv: string[], host = bed.host) =>
  await host.execs.startIn(await bed.record(), { id: "main", argv }, undefined, { isMain: true });

const exited = async (bed: ExecBed<FakeDriver>): Promise<number | undefined> => {
  await until("the container's end", async () => (await bed.driver.inspect(SANDBOX))?.state === "exited");
  return (await bed.driver.inspect(SANDBOX))?.exitCode;
};

test("the container ends with its main command's code, after the command's end is recorded", async () => {
  const say = async (process: { stdout(text: string): Promise<void> }) => {
    await process.stdout("all of it");
    return 7;
  };
  await using bed = await fakeBed({ programs: { say } });
  await start(bed, ["say"]);
  expect(await exited(bed)).toBe(7);
  expect(await bed.store.execs.get(SANDBOX, "main")).toMatchObject({
    status: "exited",
    exitCode: 7,
    stdoutBytes: 9,
  });
});

test("a main command whose starter died waits for the next process, which has its end too", async () => {
  let finish = (): void => undefined;
  const wait = async () => {
    await new Promise<void>((resolve) => {
      finish = resolve;
    });
    return 3;
  };
  await using bed = await fakeBed({ programs: { wait } });
  const first = bed.newHost();
  await start(bed, ["wait"], first);
  first.die();
  finish();
  expect(await bed.driver.inspect(SANDBOX)).toMatchObject({ state: "running" });
  expect(await bed.newHost().execs.wait(SANDBOX, "main")).toMatchObject({ exitCode: 3 });
  expect(await exited(bed)).toBe(3);
});

test("started twice it runs once", async () => {
  await using bed = await fakeBed({ programs: { stay: ({ sleep }) => sleep(60_000) } });
  const [one, two] = await Promise.all([start(bed, ["stay"]), start(bed, ["stay"], bed.newHost())]);
  expect([one.id, two.id]).toEqual(["main", "main"]);
  expect(bed.driver.started(SANDBOX)).toHaveLength(1);
});
