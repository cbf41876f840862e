import { describe, expect, test } from "vitest";
import { OWNER_LABEL } from "../../src/core/access/owner-label.ts";
import { execRecord, START, type StoreUnderTest, sandboxRecord } from "./records.ts";
import { storeBatchContract } from "./store-batch-contract.ts";
import { storeExecContract } from "./store-exec-contract.ts";
import { storeMetricsContract } from "./store-metrics-contract.ts";
import { storeSshContract } from "./store-ssh-contract.ts";
import { storeTierContract } from "./store-tier-contract.ts";
import { claim, run, storeWorkContract } from "./store-work-contract.ts";
import { storeWorkflowContract } from "./store-workflow-contract.ts";
import { storeWorkspaceContract } from "./store-workspace-contract.ts";

/** What every store must do. Each backend's test file calls it with a way to open an empty store. */
export function storeContract(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(`${name} sandboxes`, () => {
    test("a record comes back exactly as it was inserted", async () => {
      await using opened = await open();
      const { sandboxes } = opened.store;
      const full = sandboxRecord("abcd1234", {
        name: "Ünlikely ' \" name",
        state: "running",
        endReason: "out_of_memory",
        containerId: "c1",
        user: "1000:1000",
        env: { A: "1", EMPTY: "", ODD: "\u0000\n💥" },
        imageEnv: { PATH: "/opt/bin", "odd.name": "x=y" },
        labels: { team: "x", "": "" },
        mounts: [{ source: "/a", target: "/b", readOnly: true }],
        privileged: true,
        history: false,
        permissions: { aws: { role: "readonly", services: ["s3"] } },
        ttlMs: 5_000_000_000_000,
        tokenHash: "ab".repeat(32),
        startedAt: new Date(START + 1),
        stoppedAt: new Date(START + 2),
        expiresAt: new Date(START + 3),
        idleTimeoutMs: 7_200_000,
        autoResume: true,
        lastActivityAt: new Date(START + 4),
        tier: "warm",
        tierSince: new Date(START + 5),
        warmImage: "sha256:aa",
        warmIsStale: true,
        snapshotUrl: "s3://bucket/one",
        snapshotSha256: "ff".repeat(32),
        snapshotIsStale: true,
        snapshotDestination: "s3://mine/one",
      });
      const bare = sandboxRecord("efgh5678");
      await sandboxes.insert(full);
      await sandboxes.insert(bare);
      expect(await sandboxes.get("abcd1234")).toEqual(full);
      expect(await sandboxes.get("efgh5678")).toEqual(bare);
      expect(await sandboxes.get("nothing")).toBeUndefined();
    });

    test("what the caller does to a record afterwards does not reach the store", async () => {
      await using opened = await open();
      const { sandboxes } = opened.store;
      const labels = { a: "1" };
      await sandboxes.insert(sandboxRecord("abcd1234", { labels }));
      labels.a = "2";
      const first = await sandboxes.get("abcd1234");
      if (first !== undefined) first.image = "changed";
      expect(await sandboxes.get("abcd1234")).toMatchObject({
        labels: { a: "1" },
        image: "python:3.12-slim",
      });
    });

    test("a name is taken until its sandbox is deleted, an id for ever", async () => {
      await using opened = await open();
      const { sandboxes } = opened.store;
      await sandboxes.insert(sandboxRecord("aaaa", { name: "one" }));
      const second = sandboxRecord("bbbb", { name: "one" });
      await expect(sandboxes.insert(second)).rejects.toMatchObject({ code: "CONTAINER_NAME_TAKEN" });
      expect(await sandboxes.get("bbbb")).toBeUndefined();
      await sandboxes.transition("aaaa", "pending", "deleted");
      await sandboxes.insert(second);
      const again = sandboxRecord("aaaa", { name: "two" });
      await expect(sandboxes.insert(again)).rejects.toMatchObject({ code: "CONTAINER_NAME_TAKEN" });
      await sandboxes.insert(sandboxRecord("cccc"));
      await sandboxes.insert(sandboxRecord("dddd"));
    });

    test("a change of name is refused when the name is taken", async () => {
      await using opened = await open();
      const { sandboxes } = opened.store;
      await sandboxes.insert(sandboxRecord("aaaa", { name: "one" }));
      await sandboxes.insert(sandboxRecord("bbbb", { name: "two" }));
      await expect(sandboxes.update("bbbb", { name: "one" })).rejects.toMatchObject({
        code: "CONTAINER_NAME_TAKEN",
      });
      await sandboxes.update("bbbb", { name: "two" });
      expect((await sandboxes.get("bbbb"))?.name).toBe("two");
    });

    test("a reference finds by id, then by name, then by id prefix", async () => {
      await using opened = await open();
      const { sandboxes } = opened.store;
      await sandboxes.insert(sandboxRecord("abc", { name: "abcd" }));
      await sandboxes.insert(sandboxRecord("abcde"));
      await sandboxes.insert(sandboxRecord("abcdf"));
      await sandboxes.insert(sandboxRecord("a%_z", { name: "deleted-one" }));
      await sandboxes.transition("a%_z", "pending", "deleted");
      const ids = async (reference: string, limit = 10) =>
        (await sandboxes.find(reference, limit)).map((record) => record.id);
      expect(await ids("abc")).toEqual(["abc"]);
      expect(await ids("abcd")).toEqual(["abc"]);
      expect(await ids("ab")).toEqual(["abc", "abcde", "abcdf"]);
      expect(await ids("ab", 2)).toEqual(["abc", "abcde"]);
      expect(await ids("abcdf")).toEqual(["abcdf"]);
      expect(await ids("a")).toEqual([]);
      expect(await ids("")).toEqual([]);
      expect(await ids("a%")).toEqual([]);
      expect(await ids("deleted-one")).toEqual([]);
      expect(await ids("ABC")).toEqual([]);
    });

    test("a name is its owner's: others may use it too, and each is found among its owner's own", async () => {
      await using opened = await open();
      const { sandboxes } = opened.store;
      const of = (owner: string) => ({ [OWNER_LABEL]: owner });
      await sandboxes.insert(sandboxRecord("bbbb", { name: "box", labels: of("key:b") }));
      await sandboxes.insert(sandboxRecord("aaaa", { name: "box", labels: of("key:a") }));
      await sandboxes.insert(sandboxRecord("llll", { name: "box" }));
      for (const labels of [{}, of("anonymous"), of("key:a")]) {
        const again = sandboxRecord("cccc", { name: "box", labels });
        await expect(sandboxes.insert(again)).rejects.toMatchObject({ code: "CONTAINER_NAME_TAKEN" });
      }
      await sandboxes.insert(sandboxRecord("bbcc", { name: "other", labels: of("key:b") }));
      await expect(sandboxes.update("bbcc", { name: "box" })).rejects.toMatchObject({
        details: { id: "bbbb" },
      });
      const ids = async (reference: string, owner?: string, limit = 10) =>
        (await sandboxes.find(reference, limit, owner)).map((record) => record.id);
      expect(await ids("box")).toEqual(["llll", "aaaa", "bbbb"]);
      expect(await ids("box", undefined, 1)).toEqual(["llll"]);
      expect(await ids("box", "key:b")).toEqual(["bbbb"]);
      expect(await ids("box", "anonymous")).toEqual(["llll"]);
      expect(await ids("box", "key:c")).toEqual([]);
      expect(await ids("aaaa", "key:b")).toEqual([]);
      expect(await ids("bb", "key:b")).toEqual(["bbbb", "bbcc"]);
      expect(await ids("bb", "key:a")).toEqual([]);
      await sandboxes.transition("bbbb", "pending", "deleted");
      await sandboxes.update("bbcc", { name: "box" });
      expect(await ids("box", "key:b")).toEqual(["bbcc"]);
    });

    test("tells what an owner's sandboxes come to: all that are there, and the limits of what starts or runs", async () => {
      await using opened = await open();
      const { sandboxes } = opened.store;
      const limits = { ...sandboxRecord("x").limits, cpus: 0.5, memoryBytes: 100 };
      const labels = { [OWNER_LABEL]: "key:a" };
      expect(await sandboxes.usedBy("key:a")).toEqual({ sandboxes: 0, cpus: 0, memoryBytes: 0 });
      for (const id of ["aaaa", "bbbb", "cccc", "dddd"]) {
        await sandboxes.insert(sandboxRecord(id, { labels, limits }));
      }
      await sandboxes.insert(sandboxRecord("eeee", { labels: { [OWNER_LABEL]: "key:b" }, limits }));
      await sandboxes.insert(sandboxRecord("ffff", { limits }));
      await sandboxes.transition("bbbb", "pending", "running");
      await sandboxes.transition("cccc", "pending", "stopped");
      await sandboxes.transition("dddd", "pending", "deleted");
      expect(await sandboxes.usedBy("key:a")).toEqual({ sandboxes: 3, cpus: 1, memoryBytes: 200 });
      expect(await sandboxes.usedBy("anonymous")).toEqual({ sandboxes: 0, cpus: 0, memoryBytes: 0 });
    });

    test("pages come newest first, by state, label and cursor", async () => {
      await using opened = await open();
      const { sandboxes } = opened.store;
      for (let index = 0; index < 9; index++) {
        const state = index % 3 === 0 ? "running" : index % 3 === 1 ? "stopped" : "pending";
        const labels = { parity: index % 2 === 0 ? "even" : "odd", all: "yes" };
        await sandboxes.insert(sandboxRecord(`s${index}`, { state, labels }));
      }
      await sandboxes.transition("s8", "pending", "deleted");
      const ids = async (query?: Parameters<typeof sandboxes.list>[0]) =>
        (await sandboxes.list(query)).map((record) => record.id);
      expect(await ids()).toEqual(["s7", "s6", "s5", "s4", "s3", "s2", "s1", "s0"]);
      expect(await ids({ states: ["running", "stopped"], limit: 3 })).toEqual(["s7", "s6", "s4"]);
      expect(await ids({ states: ["deleted"] })).toEqual(["s8"]);
      expect(await ids({ states: [] })).toEqual([]);
      expect(await ids({ labels: { parity: "even" } })).toEqual(["s6", "s4", "s2", "s0"]);
      expect(await ids({ labels: { parity: "even", all: "yes" }, states: ["running"] })).toEqual([
        "s6",
        "s0",
      ]);
      expect(await ids({ labels: { parity: "even", all: "no" } })).toEqual([]);
      expect(await ids({ labels: { parity: "even" }, states: ["deleted"] })).toEqual(["s8"]);
      expect(await ids({ before: "s3" })).toEqual(["s2", "s1", "s0"]);
      expect(await ids({ before: "s8", limit: 2 })).toEqual(["s7", "s6"]);
      expect(await ids({ before: "unknown" })).toEqual([]);
    });

    test("changed labels are found and former ones are not", async () => {
      await using opened = await open();
      const { sandboxes } = opened.store;
      await sandboxes.insert(sandboxRecord("aaaa", { labels: { a: "1", b: "1" } }));
      await sandboxes.update("aaaa", { labels: { a: "2" } });
      expect(await sandboxes.list({ labels: { a: "2" } })).toHaveLength(1);
      expect(await sandboxes.list({ labels: { a: "1" } })).toHaveLength(0);
      expect(await sandboxes.list({ labels: { b: "1" } })).toHaveLength(0);
    });

    test("a state moves only from where it is expected to be", async () => {
      await using opened = await open();
      const { sandboxes } = opened.store;
      await sandboxes.insert(sandboxRecord("aaaa", { endReason: "lost", containerId: "c" }));
      const patch = { startedAt: new Date(START), endReason: undefined };
      expect(await sandboxes.transition("aaaa", "running", "stopped")).toBe(false);
      expect(await sandboxes.transition("aaaa", ["stopped", "pending"], "running", patch)).toBe(true);
      expect(await sandboxes.transition("aaaa", ["stopped", "pending"], "running")).toBe(false);
      expect(await sandboxes.transition("nobody", "pending", "running")).toBe(false);
      const record = await sandboxes.get("aaaa");
      expect(record).toMatchObject({ state: "running", startedAt: new Date(START), containerId: "c" });
      expect(record?.endReason).toBeUndefined();
    });

    test("an update of what is not there changes nothing", async () => {
      await using opened = await open();
      await opened.store.sandboxes.update("nobody", { containerId: "c" });
      await opened.store.sandboxes.update("nobody", {});
      expect(await opened.store.sandboxes.list()).toEqual([]);
    });

    test("due sandboxes are those running or stopped whose time has come", async () => {
      await using opened = await open();
      const { sandboxes } = opened.store;
      const at = (ms: number) => new Date(START + ms);
      await sandboxes.insert(sandboxRecord("late", { state: "running", expiresAt: at(200) }));
      await sandboxes.insert(sandboxRecord("now", { state: "running", expiresAt: at(100) }));
      await sandboxes.insert(sandboxRecord("first", { state: "stopped", expiresAt: at(50) }));
      await sandboxes.insert(sandboxRecord("pend", { state: "pending", expiresAt: at(1) }));
      await sandboxes.insert(sandboxRecord("gone", { state: "deleted", expiresAt: at(1) }));
      await sandboxes.insert(sandboxRecord("ever", { state: "running" }));
      const ids = async (now: Date, limit = 10) => (await sandboxes.due(now, limit)).map((r) => r.id);
      expect(await ids(at(100))).toEqual(["first", "now"]);
      expect(await ids(at(100), 1)).toEqual(["first"]);
      expect(await ids(at(49))).toEqual([]);
    });

    test("S2-58 idle sandboxes are those running that nobody has used for their idle timeout", async () => {
      await using opened = await open();
      const { sandboxes } = opened.store;
      const at = (ms: number) => new Date(START + ms);
      const used = (ms: number, idleTimeoutMs: number) => ({ lastActivityAt: at(ms), idleTimeoutMs });
      await sandboxes.insert(sandboxRecord("late", { state: "running", ...used(150, 50) }));
      await sandboxes.insert(sandboxRecord("now", { state: "running", ...used(0, 100) }));
      await sandboxes.insert(sandboxRecord("first", { state: "running", ...used(40, 10) }));
      await sandboxes.insert(sandboxRecord("stop", { state: "stopped", ...used(0, 1) }));
      await sandboxes.insert(sandboxRecord("pend", { state: "pending", ...used(0, 1) }));
      await sandboxes.insert(sandboxRecord("ever", { state: "running", ...used(0, 0) }));
      const ids = async (now: Date, limit = 10) => (await sandboxes.idleSince(now, limit)).map((r) => r.id);
      expect(await ids(at(100))).toEqual(["first", "now"]);
      expect(await ids(at(100), 1)).toEqual(["first"]);
      expect(await ids(at(49))).toEqual([]);
      await sandboxes.transition("first", "running", "stopped");
      expect(await ids(at(100))).toEqual(["now"]);
    });

    test("S2-27 a use is written down, never back in time and only while it runs", async () => {
      await using opened = await open();
      const { sandboxes } = opened.store;
      const at = (ms: number) => new Date(START + ms);
      await sandboxes.insert(sandboxRecord("aaaa", { state: "running", idleTimeoutMs: 100 }));
      await sandboxes.insert(sandboxRecord("bbbb", { state: "stopped", idleTimeoutMs: 100 }));
      await sandboxes.insert(sandboxRecord("cccc", { state: "running" }));
      const used = async (id: string) => Number((await sandboxes.get(id))?.lastActivityAt) - START;
      await sandboxes.touch(["aaaa", "bbbb", "nobody"], at(60));
      await sandboxes.touch(["aaaa"], at(50));
      expect([await used("aaaa"), await used("bbbb")]).toEqual([60, 0]);
      expect(await sandboxes.idleSince(at(159), 10)).toEqual([]);
      expect(await sandboxes.idleSince(at(160), 10)).toHaveLength(1);
      await sandboxes.touchAll(at(30));
      expect([await used("aaaa"), await used("bbbb"), await used("cccc")]).toEqual([30, 0, 0]);
    });

    test("removing a sandbox removes its execs, run and claim, and frees its id", async () => {
      await using opened = await open();
      const { store } = opened;
      await store.sandboxes.insert(sandboxRecord("aaaa", { labels: { a: "1" } }));
      await store.execs.insert(execRecord("aaaa", "e1"));
      await store.runs.put(run("aaaa"));
      await store.claims.take(claim("aaaa", "p1", 1000), new Date(START));
      await store.sandboxes.remove("aaaa");
      await store.sandboxes.remove("aaaa");
      await store.sandboxes.insert(sandboxRecord("aaaa"));
      expect(await store.execs.list("aaaa")).toEqual([]);
      expect(await store.runs.get("aaaa")).toBeUndefined();
      expect(await store.claims.get("aaaa")).toBeUndefined();
      expect(await store.sandboxes.list({ labels: { a: "1" } })).toEqual([]);
    });
  });

  storeExecContract(name, open);

  storeWorkContract(name, open);
  storeMetricsContract(name, open);
  storeTierContract(name, open);
  storeBatchContract(name, open);
  storeWorkflowContract(name, open);
  storeSshContract(name, open);
  storeWorkspaceContract(name, open);
}
