import { expect, test } from "vitest";
import { makeLocalBackend } from "../../../test/backends/local-backend.ts";
import { specOf } from "../../../test/contract/driver-backend.ts";
import { launch } from "../../../test/contract/launch.ts";

const MIB = 1024 ** 2;

test("where there are no control groups a process gets no more memory than the limit, and doctor is told", async () => {
  await using backend = await makeLocalBackend({ controlGroups: false });
  const limits = { ...specOf(backend).limits, memoryBytes: 64 * MIB };
  const { sh } = await launch(backend, { limits });
  // What has no end of line is kept whole by whoever waits for the last one.
  const fits = await sh(`head -c ${16 * MIB} /dev/zero | tail -n 1 | wc -c`);
  expect(fits).toMatchObject({ exitCode: 0, stdout: `${16 * MIB}\n` });
  const tooMuch = await sh(`head -c ${256 * MIB} /dev/zero | tail -n 1 | wc -c`);
  expect(tooMuch.stdout).not.toBe(`${256 * MIB}\n`);
  const { enforced, warnings } = await backend.driver.capabilities();
  expect(enforced).toMatchObject({ memory: false, cpus: false });
  expect(warnings).toContainEqual(expect.stringContaining("Memory is limited for each process"));
});
