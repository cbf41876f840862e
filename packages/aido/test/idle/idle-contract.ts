import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { CoreAido } from "../../src/core/core-aido.ts";
import { type AidoUnderTest, openPlace, output } from "../contract/aido-contract.ts";

export interface IdleUnderTest extends AidoUnderTest {
  /** As `image`, with Python. */
  readonly python: string;
  /** Behind aido's back: the container is gone, or runs again. */
  removeContainer(aido: CoreAido, id: string): Promise<void>;
  startContainer(aido: CoreAido, id: string): Promise<void>;
  /** Something that runs on the same machine and is not aido's. */
  foreign(): Promise<AsyncDisposable & { isRunning(): Promise<boolean> }>;
}

/** Goes on in the background, of no command: it listens and waits for a byte. */
const LISTEN = `import socket, os
s = socket.create_server(("127.0.0.1", 8090))
if os.fork(): os._exit(0)
fd = os.open(os.devnull, os.O_RDWR)
for n in (0, 1, 2): os.dup2(fd, n)
s.accept()[0].recv(1)
`;
const IDLE = { idleTimeoutMs: 60_000, ttlMs: 600_000 };

/** Unused sandboxes with a real driver and a real store beneath them. */
export function idleContract(under: IdleUnderTest): void {
  describe(`unused sandboxes, with the ${under.driver} driver`, () => {
    test("S2-49 S2-59 are stopped with their files, come back when used, and are never stopped at work", async () => {
      await using place = openPlace(under);
      const aido = await place.open();
      const idle = await aido.sandboxes.create({ ...IDLE, autoResume: true });
      const works = await aido.sandboxes.create(IDLE);
      expect(await output(aido, idle.id, ["sh", "-c", "echo kept > file; cat file"])).toBe("kept\n");
      const command = await aido.execs.start(works.id, { argv: ["sleep", "300"] });
      for (const { id } of [idle, works]) await unusedFor(aido, id, 120_000);
      // Its command has just ended: that counts, though the last use is long ago.
      expect(await aido.reaper.reap({ dryRun: true })).toMatchObject({ idle: [] });
      await aido.store.execs.removeAll(idle.id);
      expect(await aido.reaper.reap()).toEqual({
        idle: [idle.id],
        busy: [works.id],
        expired: [],
        failed: [],
      });
      expect(await aido.sandboxes.get(idle.id)).toMatchObject({
        state: "stopped",
        tier: "hot",
        endReason: "idle",
      });
      expect(await aido.execs.get(works.id, command.id)).toMatchObject({ status: "running" });
      const both = [output(aido, idle.id, ["cat", "file"]), output(aido, idle.id, ["cat", "file"])];
      expect(await Promise.all(both)).toEqual(["kept\n", "kept\n"]);
      const events: string[] = [];
      for await (const { event } of aido.evidence.read(idle.id)) events.push(event);
      expect(events.filter((event) => event === "sandbox.started")).toHaveLength(2);
      expect(events.filter((event) => event === "sandbox.stopped")).toHaveLength(1);
    });

    test("S2-49 come back for a port and for a terminal, if they were made to", async () => {
      await using place = openPlace(under);
      const aido = await place.open();
      const { id } = await aido.sandboxes.create({ ...IDLE, autoResume: true });
      const plain = await aido.sandboxes.create(IDLE);
      for (const one of [id, plain.id]) await aido.sandboxes.stop(one);
      const refused = { code: "CONTAINER_NOT_RUNNING" };
      await expect(aido.ports.dial(plain.id, 8090)).rejects.toMatchObject(refused);
      const pty = { rows: 24, cols: 80 };
      await expect(aido.execs.start(plain.id, { argv: ["sh"], pty, stdin: true })).rejects.toMatchObject(
        refused,
      );
      // Nothing listens any more: a stop ends whatever ran.
      await expect(aido.ports.dial(id, 8090)).rejects.toMatchObject({ code: "PORT_UNREACHABLE" });
      expect(await aido.sandboxes.get(id)).toMatchObject({ state: "running" });
      await aido.sandboxes.stop(id);
      const terminal = await aido.execs.start(id, { argv: ["sh", "-c", "stty size"], pty, stdin: true });
      expect(await aido.execs.wait(id, terminal.id)).toMatchObject({ exitCode: 0 });
      expect(await aido.sandboxes.get(id)).toMatchObject({ state: "running" });
    });

    test("S2-60 are uploaded before they are stopped as idle, when the operator wants that", async () => {
      const objects = await mkdtemp(join(tmpdir(), "aido-idle-objects-"));
      const settings = {
        "snapshot.prefix": `file://${objects}/`,
        "reaper.snapshot": true,
        "reaper.busyCpus": 0,
      };
      try {
        await using place = openPlace({ ...under, settings });
        const aido = await place.open();
        const { id } = await aido.sandboxes.create(IDLE);
        expect(await output(aido, id, ["sh", "-c", "echo kept > file; cat file"])).toBe("kept\n");
        await aido.store.execs.removeAll(id);
        await unusedFor(aido, id, 120_000);
        expect(await aido.reaper.reap()).toMatchObject({ idle: [id], busy: [], failed: [] });
        const record = await aido.store.sandboxes.get(id);
        expect(record).toMatchObject({
          state: "stopped",
          snapshotUrl: expect.stringContaining(`${objects}/${id}/`),
          snapshotSha256: expect.stringMatching(/^[0-9a-f]{64}$/),
          snapshotIsStale: false,
        });
        expect(await aido.store.counters.read()).toMatchObject({ snapshots_uploaded: 1, reaped_idle: 1 });
        // The container is lost: what was uploaded is what the sandbox comes back with.
        await under.removeContainer(aido, id);
        await aido.sandboxes.start(id);
        expect(await output(aido, id, ["cat", "file"])).toBe("kept\n");
        await aido.sandboxes.destroy(id);
        expect(await readdir(join(objects, id)).catch(() => [])).toEqual([]);
      } finally {
        await rm(objects, { recursive: true, force: true });
      }
    });

    test("S2-18 S2-51 S2-121 are kept as images when they are sidecars: the image of an idle stop is what comes back", async () => {
      await using place = openPlace({ ...under, settings: { "reaper.busyCpus": 0 } });
      const aido = await place.open();
      const { id } = await aido.sandboxes.create({ ...IDLE, profile: "sidecar", image: under.image });
      const plain = await aido.sandboxes.create(IDLE);
      for (const one of [id, plain.id]) {
        expect(await output(aido, one, ["sh", "-c", "echo kept > file; cat file"])).toBe("kept\n");
        await aido.store.execs.removeAll(one);
        await unusedFor(aido, one, 120_000);
      }
      expect((await aido.reaper.reap()).idle.toSorted()).toEqual([id, plain.id].toSorted());
      const [image, ...others] = await aido.driver.committedImages();
      expect([image?.sandboxId, others]).toEqual([id, []]);
      expect(await aido.store.sandboxes.get(id)).toMatchObject({
        ...{ state: "stopped", endReason: "idle", tier: "hot" },
        ...{ warmImage: image?.reference, warmIsStale: false },
      });
      expect(await aido.store.sandboxes.get(plain.id)).toMatchObject({ warmImage: undefined });
      expect(await aido.store.counters.read()).toMatchObject({ reaped_idle: 2, snapshots_committed: 1 });
      await under.removeContainer(aido, id);
      await aido.sandboxes.start(id);
      expect(await output(aido, id, ["cat", "file"])).toBe("kept\n");
      await aido.sandboxes.destroy(id);
      expect(await aido.driver.committedImages()).toEqual([]);
    });

    test("S2-59 are in use while a terminal is open, though nobody types", async () => {
      await using place = openPlace(under);
      const aido = await place.open();
      const { id } = await aido.sandboxes.create(IDLE);
      const terminal = await aido.execs.start(id, { argv: ["sh"], pty: { rows: 24, cols: 80 }, stdin: true });
      await unusedFor(aido, id, 120_000);
      expect(await aido.reaper.reap()).toMatchObject({ idle: [], busy: [id], failed: [] });
      expect(await aido.execs.get(id, terminal.id)).toMatchObject({ status: "running" });
      await aido.execs.kill(id, terminal.id, { signal: "SIGKILL" });
      await aido.execs.wait(id, terminal.id);
      await aido.store.execs.removeAll(id);
      await unusedFor(aido, id, 120_000);
      expect(await aido.reaper.reap()).toMatchObject({ idle: [id] });
    });

    test("are at work while a process in them computes, though nobody waits for it", async () => {
      await using place = openPlace(under);
      const aido = await place.open();
      const [busy, quiet] = [await aido.sandboxes.create(IDLE), await aido.sandboxes.create(IDLE)];
      const spin = "(while :; do :; done) >/dev/null 2>&1 & echo on";
      expect(await output(aido, busy.id, ["sh", "-c", spin])).toBe("on\n");
      for (const { id } of [busy, quiet]) {
        await aido.store.execs.removeAll(id);
        await unusedFor(aido, id, 120_000);
      }
      expect(await aido.reaper.reap()).toMatchObject({ idle: [quiet.id], busy: [busy.id] });
      expect(await aido.sandboxes.get(busy.id)).toMatchObject({ state: "running" });
    });

    test("are in use while a connection to one of their ports is open", async () => {
      await using place = openPlace(under);
      const aido = await place.open();
      const { id } = await aido.sandboxes.create({ ...IDLE, image: under.python });
      expect(await output(aido, id, ["python3", "-c", LISTEN])).toBe("");
      await aido.store.execs.removeAll(id);
      const connection = await aido.ports.dial(id, 8090);
      await unusedFor(aido, id, 120_000);
      expect(await aido.reaper.reap()).toMatchObject({ idle: [], failed: [] });
      const closed = once(connection, "close");
      connection.destroy();
      await closed;
      await unusedFor(aido, id, 120_000);
      expect(await aido.reaper.reap()).toMatchObject({ idle: [id] });
    });

    test("S2-49 S2-61 are destroyed at the end of their life", async () => {
      await using place = openPlace(under);
      const aido = await place.open();
      const { id } = await aido.sandboxes.create(IDLE);
      await aido.store.sandboxes.update(id, { expiresAt: new Date(Date.now() - 1) });
      expect(await aido.reaper.reap()).toMatchObject({ expired: [id] });
      expect(await aido.driver.list()).toEqual([]);
      await expect(aido.sandboxes.get(id)).rejects.toMatchObject({ code: "CONTAINER_EXPIRED" });
      expect(await aido.store.counters.read()).toMatchObject({ reaped_lifetime: 1 });
    });

    test("S2-68 S2-69 a running one whose container is gone is what its snapshot holds, when a server starts", async () => {
      const objects = await mkdtemp(join(tmpdir(), "aido-idle-objects-"));
      try {
        await using place = openPlace({ ...under, settings: { "snapshot.prefix": `file://${objects}/` } });
        const first = await place.open();
        const make = async () =>
          (await first.sandboxes.create({ ...IDLE, profile: "sidecar", image: under.image })).id;
        const [asObject, asImage] = [await make(), await make()];
        for (const id of [asObject, asImage])
          expect(await output(first, id, ["sh", "-c", "echo kept > file; cat file"])).toBe("kept\n");
        await first.snapshots.take(asObject);
        await first.sandboxes.stop(asImage);
        await first.sandboxes.start(asImage);
        for (const id of [asObject, asImage]) {
          expect(await first.store.sandboxes.get(id)).toMatchObject({ state: "running" });
          await under.removeContainer(first, id);
        }
        await first.close();
        const aido = await place.open();
        await aido.sandboxes.reconcile();
        await aido.sandboxes.settleAtStart();
        expect(await aido.sandboxes.get(asObject)).toMatchObject({ state: "stopped", tier: "cold" });
        expect(await aido.sandboxes.get(asImage)).toMatchObject({ state: "stopped", tier: "warm" });
        for (const id of [asObject, asImage]) {
          await aido.sandboxes.start(id);
          expect(await output(aido, id, ["cat", "file"])).toBe("kept\n");
        }
      } finally {
        await rm(objects, { recursive: true, force: true });
      }
    });

    test("S2-68 S2-69 are settled when a server starts, each as its container is, and nothing else is touched", async () => {
      await using place = openPlace(under);
      await using foreign = await under.foreign();
      const first = await place.open();
      const make = async () =>
        (await first.sandboxes.create({ ...IDLE, profile: "sidecar", image: under.image })).id;
      const runs = await make();
      const gone = await make();
      const goneStopped = await make();
      const kept = await make();
      const died = await make();
      const revived = await make();
      const unknown = await make();
      const asImage = await make();
      for (const id of [goneStopped, kept, revived, asImage]) await first.sandboxes.stop(id);
      // Stopping has kept their files as images, which a sandbox that is to be lost must not have.
      for (const id of [goneStopped, kept]) {
        await first.store.sandboxes.update(id, { warmImage: undefined });
        for (const { reference } of await first.driver.committedImages(id)) {
          await first.driver.removeImage(reference);
        }
      }
      await first.store.sandboxes.update(kept, { snapshotUrl: "file:///nowhere", snapshotSha256: "00" });
      for (const id of [gone, goneStopped, kept, asImage]) await under.removeContainer(first, id);
      await first.driver.stop(died, 0);
      await under.startContainer(first, revived);
      await first.store.sandboxes.remove(unknown);
      await first.close();
      const aido = await place.open();
      await aido.sandboxes.reconcile();
      await aido.sandboxes.settleAtStart();
      const now = async (id: string) => (await aido.store.sandboxes.get(id))?.state;
      expect(await Promise.all([runs, gone, goneStopped, kept, died, revived, unknown].map(now))).toEqual([
        "running",
        "deleted",
        "deleted",
        "stopped",
        "stopped",
        "running",
        undefined,
      ]);
      expect(await aido.sandboxes.get(kept)).toMatchObject({ tier: "cold" });
      expect(await aido.sandboxes.get(asImage)).toMatchObject({ state: "stopped", tier: "warm" });
      for (const id of [runs, revived]) expect(await output(aido, id, ["echo", "on"])).toBe("on\n");
      expect(await aido.driver.inspect(unknown)).toMatchObject({ state: "running" });
      expect(await foreign.isRunning()).toBe(true);
      await aido.driver.remove(unknown);
    });
  });
}

async function unusedFor(aido: CoreAido, id: string, ms: number): Promise<void> {
  await aido.activity.flush();
  await aido.store.sandboxes.update(id, { lastActivityAt: new Date(Date.now() - ms) });
}
