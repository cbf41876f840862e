import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openAido } from "./compose.ts";
import { loadConfig } from "./config/load-config.ts";
import type { CoreAido } from "./core/core-aido.ts";
import { StreamLogger } from "./log/stream-logger.ts";

describe("aido in this process, with the local driver", () => {
  test("makes, uses, stops, starts and destroys a sandbox, and keeps its evidence", async () => {
    await using place = openPlace();
    const aido = await place.open();
    const { id } = await aido.sandboxes.create({ name: "box", ttlMs: 60_000 });
    expect(await output(aido, id, ["sh", "-c", "echo kept > file; id -u"])).toBe("1000\n");
    await aido.sandboxes.stop("box");
    await expect(aido.execs.start(id, { argv: ["true"] })).rejects.toMatchObject({
      code: "CONTAINER_NOT_RUNNING",
    });
    await aido.sandboxes.start("box");
    expect(await output(aido, id, ["cat", "file"])).toBe("kept\n");
    await aido.sandboxes.destroy("box");
    expect(readdirSync(join(place.root, "sandboxes"))).toEqual([]);
    expect(await aido.evidence.verify(id)).toMatchObject([{ ok: true }]);
    expect(statSync(place.root).mode & 0o777).toBe(0o700);
  });

  test("finds again what another opening of the same data directory has made", async () => {
    await using place = openPlace();
    const first = await place.open();
    const { id } = await first.sandboxes.create({ ttlMs: 60_000 });
    await first.close();
    const second = await place.open();
    expect(await second.sandboxes.list()).toMatchObject([{ id, state: "running" }]);
    expect(await output(second, id, ["echo", "still here"])).toBe("still here\n");
  });

  test("S0-77 S0-78 a sandbox ends at its ttl although nobody watches, and is then found to be over", async () => {
    await using place = openPlace();
    const first = await place.open();
    const { id } = await first.sandboxes.create({ ttlMs: 1500 });
    await first.close();
    const second = await place.open();
    await expect
      .poll(async () => (await second.driver.inspect(id))?.state, { timeout: 30_000 })
      .not.toBe("running");
    expect(await second.sandboxes.list()).toEqual([]);
    await expect(second.sandboxes.get(id)).rejects.toMatchObject({ code: "CONTAINER_EXPIRED" });
  });

  test("ends a sandbox that writes more than its disk limit", async () => {
    await using place = openPlace();
    const aido = await place.open();
    const { id } = await aido.sandboxes.create({ limits: { diskBytes: 4 * 1024 * 1024 }, ttlMs: 60_000 });
    const fill = "while :; do head -c 1048576 /dev/zero >> big; sleep 0.05; done";
    await aido.execs.start(id, { argv: ["sh", "-c", fill] });
    const ended = await aido.sandboxes.untilEnded(id, AbortSignal.timeout(60_000));
    expect(ended).toMatchObject({ state: "stopped", endReason: "disk_full" });
    const events: string[] = [];
    for await (const { event } of aido.evidence.read(id)) events.push(event);
    expect(events).toContain("limit.disk");
  });
});

async function output(aido: CoreAido, id: string, argv: readonly string[]): Promise<string> {
  const exec = await aido.execs.start(id, { argv });
  await aido.execs.wait(id, exec.id);
  const chunks: Uint8Array[] = [];
  for await (const { data } of aido.execs.output(id, exec.id)) chunks.push(data);
  return Buffer.concat(chunks).toString("utf8");
}

/** Every sandbox that a test leaves is destroyed with the directory. */
function openPlace() {
  const parent = mkdtempSync(join(tmpdir(), "aido-compose-"));
  const root = join(parent, "data");
  const opened: CoreAido[] = [];
  const { config } = loadConfig({
    env: { XDG_CONFIG_HOME: "/nowhere", ...agentPath() },
    cwd: parent,
    flags: { driver: "local", dataDir: root },
  });
  const logger = new StreamLogger({
    level: "silent",
    format: "json",
    write: () => undefined,
    now: () => new Date(),
  });
  const open = async () => {
    const aido = await openAido({ config, logger });
    opened.push(aido);
    return aido;
  };
  return {
    root,
    open,
    async [Symbol.asyncDispose]() {
      const last = await open();
      for (const { id } of await last.sandboxes.list()) await last.sandboxes.destroy(id);
      for (const aido of opened) await aido.close();
      rmSync(parent, { recursive: true, force: true });
    },
  };
}

function agentPath(): Record<string, string> {
  const path = process.env["AIDO_TEST_AGENT"];
  return path === undefined ? {} : { AIDO_AGENT_PATH: path };
}
