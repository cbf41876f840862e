import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { AidoUnderTest } from "../contract/aido-contract.ts";
import { type HistoryBed, makeHistoryBed, shell } from "./history-bed.ts";

const filesOf = async (bed: HistoryBed) => (await bed.aido.history.list(bed.id)).map(({ files }) => files);

/** A history goes on through restarts, with several processes and while files change. */
export function historySurvivalContract(under: AidoUnderTest): void {
  describe(`what a history survives on ${under.driver}`, () => {
    test("a new process goes on with the same history and reads only what changed", async () => {
      await using bed = await makeHistoryBed(under);
      const one = await bed.sh("mkdir d; echo 1 > d/a; echo 2 > b");
      await bed.reopen();
      await bed.sh("echo 3 > b");
      await bed.reopen();
      await bed.sh("true");
      await bed.sh("rm -r d");
      expect(await filesOf(bed)).toEqual([["d/a"], ["b"], ["b", "d/a"], ["README.md"]]);
      await bed.reopen();
      await bed.aido.history.rollback(bed.id, one.id);
      expect((await bed.sh("cat d/a b")).out).toBe("1\n2\n");
      expect(bed.git("fsck", "--strict", "--no-dangling")).toBe("");
    });

    test.each(["lost", "broken"])("a %s state of the last process changes nothing", async (what) => {
      await using bed = await makeHistoryBed(under);
      await bed.sh("mkdir -p d/e; echo 1 > d/e/a; echo 2 > b; ln -s b c");
      await bed.aido.close();
      const state = join(bed.gitDir, "workspace.state");
      if (what === "lost") rmSync(state);
      else writeFileSync(state, "aido workspace 1 1 1\0f1 zz zz 100644 - half");
      await bed.reopen();
      await bed.sh("rm -r d; echo 3 > new");
      expect(await filesOf(bed)).toEqual([["d/e/a", "new"], ["b", "c", "d/e/a"], ["README.md"]]);
    });

    test("an exec that ends while nobody looks has its own entry before the next one starts", async () => {
      await using bed = await makeHistoryBed(under);
      const argv = ["sh", "-c", "until test -e go; do sleep 0.05; done; echo late > late"];
      const left = await bed.aido.execs.start(bed.id, { argv });
      const idle = await bed.aido.execs.start(bed.id, {
        argv: ["sh", "-c", "until test -e late; do sleep 0.05; done"],
      });
      await bed.reopen();
      await bed.sh("touch go", { history: false });
      for (const { id } of [left, idle]) {
        expect((await bed.aido.execs.wait(bed.id, id)).exitCode).toBe(0);
      }
      await bed.reopen();
      const next = await bed.sh("echo next > next");
      const entries = await bed.aido.history.list(bed.id);
      expect(entries.map(({ execId, files }) => [execId, files])).toEqual([
        [next.id, ["next"]],
        [left.id, ["go", "late"]],
        ["unknown", ["README.md"]],
      ]);
      const tree = await bed.aido.history.tree(bed.id, left.id);
      expect(tree.map(({ path }) => path)).toEqual(["README.md", "go", "late"]);
      expect(await bed.aido.history.tree(bed.id, idle.id)).toEqual(tree);
    });

    test("an exec that outlives its process is followed by a server that recovers, and recorded at its end", async () => {
      await using bed = await makeHistoryBed(under);
      const argv = ["sh", "-c", "until test -e go; do sleep 0.05; done; echo late > late"];
      const left = await bed.aido.execs.start(bed.id, { argv });
      await bed.reopen();
      await bed.aido.recover(bed.id);
      const other = await bed.sh("echo other > other");
      await bed.sh("touch go", { history: false });
      await bed.aido.execs.wait(bed.id, left.id);
      await bed.sh("echo next > next");
      const entries = await bed.aido.history.list(bed.id);
      expect(entries.slice(1, 3).map(({ execId, files }) => [execId, files])).toEqual([
        [left.id, ["go", "late"]],
        [other.id, ["other"]],
      ]);
    });

    test("what a history tells includes what a former process has not recorded", async () => {
      await using bed = await makeHistoryBed(under);
      const argv = ["sh", "-c", "until test -e go; do sleep 0.05; done"];
      const left = await bed.aido.execs.start(bed.id, { argv });
      await bed.reopen();
      await bed.sh("touch go", { history: false });
      await bed.aido.execs.wait(bed.id, left.id);
      const diff = await bed.aido.history.diff(bed.id, "unknown", left.id);
      expect(Object.keys(diff)).toEqual(["go"]);
    });

    test("goes on after the sandbox was stopped and started", async () => {
      await using bed = await makeHistoryBed(under);
      await bed.sh("echo 1 > a");
      await bed.sh("echo 1 > b");
      await bed.aido.sandboxes.stop(bed.id);
      expect(await filesOf(bed)).toEqual([["b"], ["a"], ["README.md"]]);
      await expect(bed.aido.history.rollback(bed.id, "unknown")).rejects.toMatchObject({
        code: "CONTAINER_NOT_RUNNING",
      });
      await bed.aido.sandboxes.start(bed.id);
      await bed.sh("echo 2 > a");
      await bed.sh("echo 3 > a");
      expect(await filesOf(bed)).toEqual([["a"], ["a"], ["b"], ["a"], ["README.md"]]);
    });

    test("closing leaves no watch behind in the sandbox", async () => {
      await using bed = await makeHistoryBed(under);
      // The first process of the sandbox and the parent of this command bear the same name as a watch.
      const count = "grep -lx aido-agent /proc/[0-9]*/comm 2>/dev/null | wc -l";
      const agents = async () => Number((await bed.sh(count, { history: false })).out);
      for (let i = 0; i < 3; i++) await bed.sh(`echo ${i} > a`);
      expect(await agents()).toBe(3);
      await bed.reopen();
      await expect.poll(agents, { timeout: 30_000 }).toBe(2);
    });

    test("several processes add to one history and none loses an entry", async () => {
      await using bed = await makeHistoryBed(under);
      const others = [bed.aido, await bed.open(), await bed.open()];
      for (const [index, aido] of others.entries()) {
        await shell(aido, bed.id, `echo ${index} > turn${index}`);
        await shell(aido, bed.id, "true");
      }
      expect(await filesOf(bed)).toEqual([["turn2"], ["turn1"], ["turn0"], ["README.md"]]);
      const all = others.flatMap((aido, index) =>
        Array.from({ length: 6 }, (_, i) => shell(aido, bed.id, `echo x > p${index}-${i}`)),
      );
      const done = await Promise.all(all);
      const last = await bed.sh("true");
      const tree = (await bed.aido.history.tree(bed.id, last.id)).map(({ path }) => path);
      expect(tree.filter((path) => path.startsWith("p"))).toHaveLength(18);
      for (const { id } of done) expect(await bed.aido.history.tree(bed.id, id)).not.toEqual([]);
      const entries = await bed.aido.history.list(bed.id, { limit: 100 });
      expect(new Set(entries.flatMap(({ files }) => files)).size).toBe(1 + 3 + 18);
      expect(bed.git("fsck", "--strict", "--no-dangling")).toBe("");
      expect(bed.git("rev-parse", "main").trim()).toBe(entries[0]?.commitId);
    });

    test("files that change while they are read are right once they rest", async () => {
      await using bed = await makeHistoryBed(under);
      const churn = `i=0; while ! test -e stop; do i=$((i+1)); echo $i > w/f$((i%5)); mkdir -p w/d; mv w/d w/e; rm -r w/e;
        ln -sf f0 w/l; rm w/l; head -c 70000 /dev/zero > w/big; mkdir w/x; echo 1 > w/x/y; rm -r w/x; done; echo end > w/f0`;
      const argv = ["sh", "-c", `mkdir w; ${churn}`];
      const busy = await bed.aido.execs.start(bed.id, { argv });
      for (let i = 0; i < 20; i++) await bed.sh(`echo ${i} > mine`);
      await bed.sh("touch stop");
      expect((await bed.aido.execs.wait(bed.id, busy.id)).exitCode).toBe(0);
      const last = await bed.sh("true");
      const tree = await bed.aido.history.tree(bed.id, last.id);
      const listed = (await bed.sh("find * -type f | sort")).out.trim().split("\n");
      expect(tree.map(({ path }) => path).sort()).toEqual(listed.sort());
      for (const path of listed) {
        const kept = Buffer.from(await bed.aido.history.file(bed.id, last.id, path));
        const { out } = await bed.sh(`cat ${path}`);
        expect(kept.toString("latin1") === Buffer.from(out).toString("latin1")).toBe(true);
      }
      expect(bed.git("fsck", "--strict", "--no-dangling")).toBe("");
    });

    test("a file written through another of its names is seen under all", async () => {
      await using bed = await makeHistoryBed(under);
      await bed.sh("mkdir d; echo 1 > a; ln a d/b; echo 2 > other");
      await bed.sh("true");
      await bed.sh("echo 3 > a");
      expect((await filesOf(bed))[0]).toEqual(["a", "d/b"]);
      await bed.sh("echo 4 >> d/b");
      expect((await filesOf(bed))[0]).toEqual(["a", "d/b"]);
    });
  });
}
