import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openAido } from "../../src/compose.ts";
import { loadConfig } from "../../src/config/load-config.ts";
import type { CoreAido } from "../../src/core/core-aido.ts";
import { SystemClock } from "../../src/core/system-clock.ts";
import { S3Store } from "../../src/objects/s3/s3-store.ts";
import { S3Server } from "../backends/s3-server.ts";
import { TcpProxy } from "../backends/tcp-proxy.ts";
import { QUIET } from "./death-settings.ts";

const LONG_AGO_MS = 30 * 86_400_000;
const FILL =
  "echo kept > file && dd if=/dev/urandom of=big bs=1048576 count=20 2>/dev/null && sha256sum big > sum";
const CHECK = "cat file && sha256sum -c sum >/dev/null && echo whole";

/** A place with sandboxes of one driver; whoever opens it is another process. */
export class Mishap implements AsyncDisposable {
  readonly driver: "docker" | "local";
  readonly image: string;
  readonly dataDir: string;
  readonly #env: Readonly<Record<string, string>>;
  readonly #open: CoreAido[] = [];

  private constructor(
    driver: "docker" | "local",
    image: string,
    dataDir: string,
    env: Readonly<Record<string, string>>,
  ) {
    this.driver = driver;
    this.image = image;
    this.dataDir = dataDir;
    this.#env = env;
  }

  static async make(
    driver: "docker" | "local",
    image: string,
    env: Readonly<Record<string, string>>,
  ): Promise<Mishap> {
    return new Mishap(driver, image, await mkdtemp(join(tmpdir(), "aido-mishap-")), env);
  }

  async open(env: Readonly<Record<string, string>> = {}): Promise<CoreAido> {
    const { dataDir, driver } = this;
    const flags = { dataDir, driver };
    const { config } = loadConfig({ env: { ...this.#env, ...env }, cwd: dataDir, flags });
    const aido = await openAido({ config, logger: QUIET });
    this.#open.push(aido);
    return aido;
  }

  /** A stopped sandbox with files in the tier that is asked for. */
  async stopped(aido: CoreAido, tier: "hot" | "warm" | "cold"): Promise<string> {
    const { id } = await aido.sandboxes.create({ image: this.image, workdir: "/work" });
    await this.sh(aido, id, FILL);
    await aido.sandboxes.stop(id);
    for (const next of tier === "hot" ? [] : tier === "warm" ? ["warmed"] : ["warmed", "cooled"]) {
      expect(await this.collect(aido, id)).toMatchObject({ [next]: [id], failed: [] });
    }
    return id;
  }

  /** As if the sandbox had been in its tier for a month. */
  async collect(aido: CoreAido, id: string) {
    await aido.store.sandboxes.update(id, { tierSince: new Date(Date.now() - LONG_AGO_MS) });
    return await aido.gc.collect();
  }

  async sh(aido: CoreAido, id: string, script: string): Promise<string> {
    const exec = await aido.execs.start(id, { argv: ["/bin/sh", "-c", script] });
    await aido.execs.wait(id, exec.id);
    const chunks: Uint8Array[] = [];
    for await (const chunk of aido.execs.output(id, exec.id)) chunks.push(chunk.data);
    return Buffer.concat(chunks).toString();
  }

  /** It runs, and every file is as it was. */
  async expectBack(aido: CoreAido, id: string): Promise<void> {
    expect(await this.sh(aido, id, CHECK)).toBe("kept\nwhole\n");
  }

  async expectNothingLeft(aido: CoreAido): Promise<void> {
    expect(await aido.driver.list()).toEqual([]);
    expect(await aido.driver.committedImages()).toEqual([]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const last = await this.open();
    for (const { sandboxId } of await last.driver.list()) await last.driver.remove(sandboxId);
    for (const { reference } of await last.driver.committedImages()) await last.driver.removeImage(reference);
    for (const each of this.#open) await each.close();
    await rm(this.dataDir, { recursive: true, force: true });
  }
}

/** What goes wrong between a real driver and a real object store; nothing may be lost by it. */
export function mishapSuite(driver: "docker" | "local", image: string): void {
  describe(`on ${driver}, with a real S3 server:`, () => {
    let s3: S3Server;
    beforeAll(async () => {
      s3 = await S3Server.start();
    });
    afterAll(async () => {
      await s3[Symbol.asyncDispose]();
    });
    const make = () =>
      Mishap.make(driver, image, {
        ...s3.env,
        SANDBOX_SNAPSHOT_DESTINATION_PREFIX: `s3://${s3.bucket}/mishap/`,
      });
    const through = (proxy: TcpProxy) => ({ AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${proxy.port}` });
    const store = () =>
      new S3Store({ bucket: s3.bucket, prefix: "" }, { settings: s3.settings(), clock: new SystemClock() });
    const keyOf = async (aido: CoreAido, id: string) =>
      new URL((await aido.store.sandboxes.get(id))?.snapshotUrl ?? "").pathname.slice(1);

    test.each(["hot", "warm", "cold"] as const)(
      "a sandbox that is destroyed in tier %s takes its container, its image and its object with it",
      async (tier) => {
        await using place = await make();
        const aido = await place.open();
        const id = await place.stopped(aido, tier);
        expect(await s3.objects()).toHaveLength(tier === "cold" ? 1 : 0);
        await (await place.open()).sandboxes.destroy(id);
        await place.expectNothingLeft(aido);
        expect(await s3.objects()).toEqual([]);
        expect(await aido.store.sandboxes.get(id)).toMatchObject({ state: "deleted", tier: undefined });
        expect((await aido.evidence.verify(id)).every(({ ok }) => ok)).toBe(true);
      },
    );

    test("a snapshot that was asked for goes with its sandbox", async () => {
      await using place = await make();
      const aido = await place.open();
      const { id } = await aido.sandboxes.create({ image: place.image, workdir: "/work" });
      await aido.snapshots.take(id);
      expect(await s3.objects()).toHaveLength(1);
      await aido.sandboxes.destroy(id);
      expect(await s3.objects()).toEqual([]);
    });

    test("an upload that is cut midway leaves the image, and the next collection does it", async () => {
      await using place = await make();
      await using proxy = await TcpProxy.to({ host: "127.0.0.1", port: s3.port });
      const aido = await place.open(through(proxy));
      const id = await place.stopped(aido, "warm");
      let sent = 0;
      proxy.onSent = (chunk) => {
        sent += chunk.length;
        if (sent < 9 * 1024 * 1024 || proxy.isRefusing) return;
        proxy.isRefusing = true;
        proxy.cut();
      };
      expect(await place.collect(aido, id)).toMatchObject({
        cooled: [],
        failed: [{ id, code: "OBJECT_STORE_UNAVAILABLE" }],
      });
      expect(proxy.isRefusing).toBe(true);
      expect(await aido.store.sandboxes.get(id)).toMatchObject({ state: "stopped", tier: "warm" });
      proxy.onSent = () => undefined;
      proxy.isRefusing = false;
      expect(await place.collect(aido, id)).toMatchObject({ cooled: [id], failed: [] });
      await place.expectNothingLeft(aido);
      await aido.sandboxes.start(id);
      await place.expectBack(aido, id);
      await aido.sandboxes.destroy(id);
    });

    test("S2-56 an object that was changed under us is refused, and the sandbox comes back when it is right again", async () => {
      await using place = await make();
      const aido = await place.open();
      const id = await place.stopped(aido, "cold");
      const key = await keyOf(aido, id);
      const kept: Uint8Array[] = [];
      for await (const chunk of await store().get(key)) kept.push(chunk);
      const good = Buffer.concat(kept);
      const bad = Buffer.from(good);
      bad.writeUInt8(bad.readUInt8(bad.length >> 1) ^ 1, bad.length >> 1);
      for (const wrong of [bad, good.subarray(0, good.length - 100), Buffer.from("other")]) {
        await store().put(key, Readable.from([wrong]));
        await expect(aido.sandboxes.start(id)).rejects.toMatchObject({ code: "OBJECT_BROKEN" });
        expect(await aido.store.sandboxes.get(id)).toMatchObject({ state: "stopped", tier: "cold" });
        await place.expectNothingLeft(aido);
      }
      await store().put(key, Readable.from([good]));
      await aido.sandboxes.start(id);
      await place.expectBack(aido, id);
      await aido.sandboxes.destroy(id);
      expect(await store().head(key)).toBeUndefined();
    });

    test("an image that was deleted behind our back is told as a loss, and its sandbox can be destroyed", async () => {
      await using place = await make();
      const aido = await place.open();
      const id = await place.stopped(aido, "warm");
      const reference = (await aido.store.sandboxes.get(id))?.warmImage ?? "";
      await (await place.open()).driver.removeImage(reference);
      await expect(aido.sandboxes.start(id)).rejects.toMatchObject({ code: "IMAGE_NOT_FOUND" });
      expect((await place.collect(aido, id)).cooled).toEqual([]);
      await aido.sandboxes.destroy(id);
      await place.expectNothingLeft(aido);
      expect((await aido.evidence.verify(id)).every(({ ok }) => ok)).toBe(true);
    });

    test("of two processes that resume at once, one does, and there is one container with all files", async () => {
      await using place = await make();
      const [one, other] = [await place.open(), await place.open()];
      const id = await place.stopped(one, "cold");
      const outcomes = await Promise.allSettled([one.sandboxes.start(id), other.sandboxes.start(id)]);
      const failed = outcomes.filter((outcome) => outcome.status === "rejected");
      expect(failed.length).toBeLessThan(2);
      for (const { reason } of failed) expect(reason).toMatchObject({ code: "CONTAINER_BUSY" });
      expect(await one.driver.list()).toHaveLength(1);
      await place.expectBack(other, id);
      await one.sandboxes.destroy(id);
      await place.expectNothingLeft(one);
    });

    test("a destroy while another process resumes wins, and neither container nor object is left", async () => {
      await using place = await make();
      await using proxy = await TcpProxy.to({ host: "127.0.0.1", port: s3.port });
      const aido = await place.open();
      const id = await place.stopped(aido, "cold");
      const key = await keyOf(aido, id);
      const slow = await place.open(through(proxy));
      proxy.holdAfterBytes = 4 * 1024 * 1024;
      const resuming = slow.sandboxes.start(id).catch((thrown: unknown) => thrown);
      await proxy.held;
      await aido.sandboxes.destroy(id);
      proxy.cut();
      expect(await resuming).toBeInstanceOf(Error);
      await aido.sandboxes.reconcile();
      await place.expectNothingLeft(aido);
      expect(await aido.store.sandboxes.get(id)).toMatchObject({ state: "deleted" });
      expect(await store().head(key)).toBeUndefined();
    });
  });

  test.skipIf(process.getuid?.() !== 0)(
    `on ${driver} a disk that is full during a snapshot leaves the image, and is told`,
    async () => {
      await using place = await Mishap.make(driver, image, {});
      const small = join(place.dataDir, "small");
      await mkdir(small);
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=8m", "tmpfs", small]);
      try {
        const aido = await place.open({ SANDBOX_SNAPSHOT_DESTINATION_PREFIX: `file://${small}/` });
        const id = await place.stopped(aido, "warm");
        expect(await place.collect(aido, id)).toMatchObject({
          cooled: [],
          failed: [{ id, code: "DISK_FULL" }],
        });
        expect(await aido.store.sandboxes.get(id)).toMatchObject({ state: "stopped", tier: "warm" });
        // What was written until then is gone: else no later snapshot would fit either.
        const left = execFileSync("du", ["-sk", small]).toString();
        expect(Number.parseInt(left, 10)).toBeLessThan(1024);
        execFileSync("mount", ["-o", "remount,size=64m", small]);
        expect(await place.collect(aido, id)).toMatchObject({ cooled: [id], failed: [] });
        await aido.sandboxes.start(id);
        await place.expectBack(aido, id);
        await aido.sandboxes.destroy(id);
      } finally {
        execFileSync("umount", [small]);
      }
    },
  );
}
