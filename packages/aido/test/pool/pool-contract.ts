import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type PoolSpec, parsePool } from "../../src/core/pool/parse-pool.ts";
import type { WarmPool } from "../../src/core/pool/warm-pool.ts";
import { agentPath } from "../backends/agent-path.ts";
import { type AidoUnderTest, openPlace, output } from "../contract/aido-contract.ts";
import { bundle } from "../processes/bundle.ts";
import { startChild } from "../processes/child.ts";
import { openPool, poolRequest } from "./open-pool.ts";

/** The pool with a real driver and a real store beneath it. */
export function poolContract(under: AidoUnderTest): void {
  describe(`the warm pool, with the ${under.driver} driver`, () => {
    test("a claimed sandbox runs a command at once, with its variables, and ends at its ttl", async () => {
      await using bed = await poolBed(under, 1);
      await bed.ready(1);
      expect(await bed.aido.sandboxes.list()).toEqual([]);
      const made = await bed.create({ name: "mine", env: { GREETING: "hello" }, ttlMs: 3_000 });
      expect(bed.pool.state()).toMatchObject([{ hits: 1, misses: 0 }]);
      expect(made).toMatchObject({ name: "mine", state: "running" });
      expect(await output(bed.aido, made.id, ["sh", "-c", "echo $GREETING; id -u"])).toBe("hello\n1000\n");
      expect(await bed.aido.history.list(made.id)).toHaveLength(1);
      expect(await bed.aido.evidence.verify(made.id)).toMatchObject([{ ok: true }]);
      await expect
        .poll(async () => (await bed.aido.driver.inspect(made.id))?.state, { timeout: 30_000 })
        .not.toBe("running");
    });

    test("of twenty that ask at once none fails, none gets another's, and the pool fills again", async () => {
      await using bed = await poolBed(under, 5);
      await bed.ready(5);
      const made = await Promise.all(
        Array.from({ length: 20 }, (_, at) => bed.create({ labels: { owner: `o${at}` }, ttlMs: 120_000 })),
      );
      expect(new Set(made.map(({ id }) => id)).size).toBe(20);
      expect(bed.pool.state()).toMatchObject([{ hits: 5, misses: 15 }]);
      const said = await Promise.all(made.map(({ id }) => output(bed.aido, id, ["echo", id])));
      expect(said).toEqual(made.map(({ id }) => `${id}\n`));
      for (const [at, { id }] of made.entries()) {
        expect((await bed.aido.sandboxes.get(id)).labels).toEqual({ owner: `o${at}` });
      }
      await Promise.all(made.map(({ id }) => bed.aido.sandboxes.destroy(id)));
      await expect.poll(() => bed.pool.state()[0]?.ready, { timeout: 60_000 }).toBeGreaterThanOrEqual(5);
    });

    test("one that died behind the pool's back is given to nobody, and the pool fills again", async () => {
      await using bed = await poolBed(under, 2);
      await bed.ready(2);
      const [dead = ""] = (await bed.aido.driver.list()).map(({ sandboxId }) => sandboxId);
      await bed.aido.driver.stop(dead, 0);
      const made = [await bed.create({ ttlMs: 120_000 }), await bed.create({ ttlMs: 120_000 })];
      for (const { id } of made) {
        expect(id).not.toBe(dead);
        expect(await output(bed.aido, id, ["echo", id])).toBe(`${id}\n`);
      }
      // Asked for twice within the minute: as many are kept, and none of them is the dead one.
      await bed.ready(2);
      await expect.poll(() => bed.aido.driver.inspect(dead), { timeout: 60_000 }).toBeUndefined();
      const next = await bed.create({ ttlMs: 120_000 });
      expect(await output(bed.aido, next.id, ["echo", "again"])).toBe("again\n");
    });

    test("a pool with limits of its own is for requests with those limits, and others get a new sandbox", async () => {
      await using bed = await poolBed(under, 0);
      const limits = { memoryBytes: 256 * 1024 ** 2 };
      const specs = parsePool(JSON.stringify([{ image: under.image, size: 1, limits }]));
      const pool = await bed.open(specs);
      await expect.poll(() => pool.state()[0]?.ready, { timeout: 60_000 }).toBe(1);
      const other = await bed.create({ ttlMs: 120_000 });
      expect(pool.state()).toMatchObject([{ ready: 1, hits: 0 }]);
      expect((await bed.aido.sandboxes.get(other.id)).limits.memoryBytes).not.toBe(limits.memoryBytes);
      const same = await bed.create({ ttlMs: 120_000, limits });
      expect(pool.state()).toMatchObject([{ hits: 1 }]);
      expect((await bed.aido.sandboxes.get(same.id)).limits).toMatchObject(limits);
      expect(await output(bed.aido, same.id, ["echo", "bounded"])).toBe("bounded\n");
    });

    test("closing leaves no sandbox that nobody got", async () => {
      await using bed = await poolBed(under, 2);
      await bed.ready(2);
      const mine = await bed.create({ ttlMs: 60_000 });
      await bed.pool.close();
      expect((await bed.aido.driver.list()).map(({ sandboxId }) => sandboxId)).toEqual([mine.id]);
      expect(readdirSync(join(bed.root, "sandboxes"))).toEqual([mine.id]);
    });

    test("what a killed process left is given away by the next, or removed", async () => {
      await using bed = await poolBed(under, 0);
      using built = await bundle(new URL("pool-program.ts", import.meta.url));
      const args = [bed.root, under.driver, under.image, agentPath(), "3"];
      await using child = startChild(built.program, args);
      await child.until(1);
      const before = (await bed.aido.driver.list()).map(({ sandboxId }) => sandboxId);
      expect(before.length).toBeGreaterThanOrEqual(3);
      await child.kill();
      const pool = await bed.open(1);
      await expect.poll(() => pool.state()[0]?.ready, { timeout: 60_000 }).toBe(1);
      await expect.poll(async () => (await bed.aido.driver.list()).length, { timeout: 60_000 }).toBe(1);
      const made = await bed.create({ ttlMs: 60_000 });
      expect(before).toContain(made.id);
      expect(await output(bed.aido, made.id, ["echo", "inherited"])).toBe("inherited\n");
    });
  });
}

async function poolBed(under: AidoUnderTest, size: number) {
  const place = openPlace(under);
  const aido = await place.open();
  const pools: WarmPool[] = [];
  const open = async (wanted: number | readonly PoolSpec[]) => {
    const pool = await openPool(aido, under.image, wanted);
    pools.push(pool);
    return pool;
  };
  const pool = await open(size);
  return {
    aido,
    pool,
    open,
    root: place.root,
    create: (request: object) => aido.sandboxes.create({ ...poolRequest(under.image), ...request }),
    ready: (count: number) => expect.poll(() => pool.state()[0]?.ready, { timeout: 60_000 }).toBe(count),
    async [Symbol.asyncDispose]() {
      for (const each of pools) await each.close();
      await place[Symbol.asyncDispose]();
    },
  };
}
