import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bundle } from "../../../test/processes/bundle.ts";
import { startChild } from "../../../test/processes/child.ts";
import { findAgent } from "../../compose/find-agent.ts";
import { openAido } from "../../compose.ts";
import { loadConfig } from "../../config/load-config.ts";
import { StreamLogger } from "../../log/stream-logger.ts";

let built: Awaited<ReturnType<typeof bundle>>;
const agentPath = findAgent(process.env["AIDO_TEST_AGENT"]);

beforeAll(async () => {
  built = await bundle(new URL("../../../test/processes/life-program.ts", import.meta.url));
}, 60_000);
afterAll(() => built?.[Symbol.dispose]());

test("a process killed between any two steps of a sandbox's life leaves nothing that the next one cannot end", async () => {
  const total = await countSteps();
  expect(total).toBeGreaterThan(40);
  for (let step = 0; step < total; step += 1) {
    using place = temporaryPlace();
    await using child = startChild(built.program, [place.root, agentPath, String(step)]);
    await child.ended;
    expect(child.signal, `step ${step}`).toBe("SIGKILL");
    await expectRecovery(place.root, `killed at step ${step} of ${total}`);
  }
}, 600_000);

async function countSteps(): Promise<number> {
  using place = temporaryPlace();
  await using child = startChild(built.program, [place.root, agentPath, "never"]);
  await child.until(1);
  await child.ended;
  return Number(child.lines[0]);
}

/** The next process shows only states that are true, and after it has destroyed what is shown nothing is left. */
async function expectRecovery(root: string, when: string): Promise<void> {
  const logger = new StreamLogger({
    level: "silent",
    format: "json",
    write: () => undefined,
    now: () => new Date(),
  });
  const { config } = loadConfig({
    env: { XDG_CONFIG_HOME: "/nowhere" },
    cwd: root,
    flags: { driver: "local", dataDir: root, agentPath },
  });
  const aido = await openAido({ config, logger });
  try {
    const shown = await aido.sandboxes.list();
    const containers = await aido.driver.list();
    const running = containers.filter((container) => container.state === "running");
    const claimed = shown.filter((sandbox) => sandbox.state === "running");
    expect(
      running.map((one) => one.sandboxId),
      when,
    ).toEqual(claimed.map((one) => one.id));
    expect(
      shown.map((sandbox) => sandbox.state),
      when,
    ).not.toContain("pending");
    expect(await aido.store.claims.list(), when).toEqual([]);
    for (const { id } of shown) await aido.sandboxes.destroy(id);
    expect(await aido.driver.list(), when).toEqual([]);
    expect(readdirSync(join(root, "sandboxes")), when).toEqual([]);
    for (const verdict of await aido.evidence.verify()) expect(verdict, when).toMatchObject({ ok: true });
  } finally {
    await aido.close();
  }
}

function temporaryPlace() {
  const parent = mkdtempSync(join(tmpdir(), "aido-death-"));
  const root = join(parent, "data");
  return {
    root,
    [Symbol.dispose]() {
      if (existsSync(parent)) rmSync(parent, { recursive: true, force: true });
    },
  };
}
