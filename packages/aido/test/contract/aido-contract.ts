import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openAido } from "../../src/compose.ts";
import { loadConfig } from "../../src/config/load-config.ts";
import type { CoreAido } from "../../src/core/core-aido.ts";
import { StreamLogger } from "../../src/log/stream-logger.ts";
import { agentPath } from "../backends/agent-path.ts";

export interface AidoUnderTest {
  readonly driver: "docker" | "local";
  /** With a shell and the usual small programs. */
  readonly image: string;
  /** Besides, as a configuration file has them. */
  readonly settings?: Readonly<Record<string, unknown>>;
}

/** What aido in one process does with a real driver beneath it. */
export function aidoContract(under: AidoUnderTest): void {
  describe(`aido in this process, with the ${under.driver} driver`, () => {
    test("makes, uses, stops, starts and destroys a sandbox, and keeps its evidence", async () => {
      await using place = openPlace(under);
      const aido = await place.open();
      const { id } = await aido.sandboxes.create({ name: "box", ttlMs: 60_000 });
      const { uid } = (await aido.driver.inspect(id))?.user ?? { uid: 0 };
      expect(uid).toBeGreaterThanOrEqual(1000);
      expect(await output(aido, id, ["sh", "-c", "echo kept > file; id -u"])).toBe(`${uid}\n`);
      await aido.sandboxes.stop("box");
      await expect(aido.execs.start(id, { argv: ["true"] })).rejects.toMatchObject({
        code: "CONTAINER_NOT_RUNNING",
      });
      await aido.sandboxes.start("box");
      expect(await output(aido, id, ["cat", "file"])).toBe("kept\n");
      await aido.sandboxes.destroy("box");
      expect(await aido.driver.list()).toEqual([]);
      expect(readdirSync(join(place.root, "sandboxes"))).toEqual([]);
      expect(await aido.evidence.verify(id)).toMatchObject([{ ok: true }]);
      expect(statSync(place.root).mode & 0o777).toBe(0o700);
    });

    test("finds again what another opening of the same data directory has made", async () => {
      await using place = openPlace(under);
      const first = await place.open();
      const { id } = await first.sandboxes.create({ ttlMs: 60_000 });
      await first.close();
      const second = await place.open();
      expect(await second.sandboxes.list()).toMatchObject([{ id, state: "running" }]);
      expect(await output(second, id, ["echo", "still here"])).toBe("still here\n");
    });

    test("S0-77 S0-78 a sandbox ends at its ttl although nobody watches, and is then found to be over", async () => {
      await using place = openPlace(under);
      const first = await place.open();
      const { id } = await first.sandboxes.create({ ttlMs: 3000 });
      await first.close();
      const second = await place.open();
      await expect
        .poll(async () => (await second.driver.inspect(id))?.state, { timeout: 30_000 })
        .not.toBe("running");
      expect(await second.sandboxes.list()).toEqual([]);
      await expect(second.sandboxes.get(id)).rejects.toMatchObject({ code: "CONTAINER_EXPIRED" });
    });

    test("ends a sandbox that writes more than its disk limit", async () => {
      await using place = openPlace(under);
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

    test("leaves nothing behind when the image is not there", async () => {
      await using place = openPlace(under);
      const aido = await place.open();
      const failed = aido.sandboxes.create({ image: "aido.invalid/no/such-image:1", user: "12:34" });
      await expect(failed).rejects.toMatchObject({ code: expect.stringMatching(/^(IMAGE_|UNSUPPORTED)/) });
      expect(await aido.driver.list()).toEqual([]);
      expect(await aido.sandboxes.list()).toEqual([]);
      expect(readdirSync(join(place.root, "sandboxes"))).toEqual([]);
    });

    test("of two that destroy and use the same sandbox at once, none is left with half of it", async () => {
      await using place = openPlace(under);
      const [one, two] = [await place.open(), await place.open()];
      const { id } = await one.sandboxes.create({ ttlMs: 60_000 });
      await Promise.all([one.sandboxes.destroy(id), two.sandboxes.destroy(id)]);
      expect(await two.driver.list()).toEqual([]);
      expect(existsSync(join(place.root, "sandboxes", id))).toBe(false);
      expect(await two.evidence.verify(id)).toMatchObject([{ ok: true }]);
    });
  });
}

export async function output(
  aido: CoreAido,
  id: string,
  argv: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const exec = await aido.execs.start(id, { argv, env });
  await aido.execs.wait(id, exec.id);
  const chunks: Uint8Array[] = [];
  for await (const { data } of aido.execs.output(id, exec.id)) chunks.push(data);
  return Buffer.concat(chunks).toString("utf8");
}

/** Every sandbox that a test leaves is destroyed with the directory. */
export function openPlace({ driver, image, settings }: AidoUnderTest) {
  const parent = mkdtempSync(join(tmpdir(), "aido-compose-"));
  const root = join(parent, "data");
  const opened: CoreAido[] = [];
  const { config } = loadConfig({
    env: { XDG_CONFIG_HOME: "/nowhere", DOCKER_HOST: process.env["DOCKER_HOST"] },
    cwd: parent,
    flags: { driver, dataDir: root, defaultImage: image, agentPath: agentPath(), ...settings },
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
