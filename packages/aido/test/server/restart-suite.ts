import { describe, expect, test } from "vitest";
import { ExecViewer } from "./exec-viewer.ts";
import { isRunning } from "./first-process.ts";
import { ServerBed, until } from "./server-bed.ts";

const COMMANDS = 20;
const LINES = 120;

/** What a command prints: numbered lines on both streams, all but the first two while the server dies and is dead. It leaves a file. */
const script = (at: number) =>
  [
    `echo ${at} > file-${at}; i=0; while [ $i -lt ${LINES} ]; do echo "${at} out $i"; echo "${at} err $i" >&2; i=$((i+1))`,
    `[ $i = 2 ] && while [ ! -e go ]; do sleep 0.02; done; sleep 0.02; done; exit ${at}`,
  ].join("; ");

const expected = (at: number, name: string) =>
  Array.from({ length: LINES }, (_, line) => `${at} ${name} ${line}\n`).join("");

/** A server that is killed without a warning, and the next one on the same data directory. */
export function restartSuite(driver: "local" | "docker"): void {
  describe(`a server that is killed, with the ${driver} driver`, () => {
    test("commands run on, end with their true exit code, and viewers get every byte exactly once", async () => {
      await using bed = await ServerBed.start({ driver });
      const ids = [await bed.sandbox(), await bed.sandbox()];
      const commands = await Promise.all(
        Array.from({ length: COMMANDS }, async (_, at) => {
          const containerId = ids[at % ids.length] ?? "";
          const started = await bed.sh(containerId, script(at), { background: true, id: `job-${at}` });
          expect(started.status).toBe(202);
          return { at, containerId, viewer: new ExecViewer(bed, containerId, `job-${at}`) };
        }),
      );
      const watching = commands.map(({ viewer }) => viewer.watch());
      await until("every viewer has seen something", () =>
        commands.every(({ viewer }) => viewer.next.stdout > 0 && viewer.next.stderr > 0),
      );
      // None of them can have ended before, however long it took until all were watched.
      await Promise.all(ids.map((id) => bed.exec(id, ["touch", "go"])));
      await bed.kill();
      await bed.start();
      await Promise.all(watching);
      for (const { at, containerId, viewer } of commands) {
        expect([at, viewer.wrong]).toEqual([at, undefined]);
        expect(viewer.end).toMatchObject({ state: "exited", exitCode: at });
        expect(viewer.connections).toBeGreaterThanOrEqual(2);
        expect(Buffer.concat(viewer.bytes.stdout).toString()).toBe(expected(at, "out"));
        expect(Buffer.concat(viewer.bytes.stderr).toString()).toBe(expected(at, "err"));
        const recorded = await bed.get(`/api/sandbox/${containerId}/exec/job-${at}`);
        expect(recorded.json).toMatchObject({
          exitCode: at,
          stdout: expected(at, "out"),
          stderr: expected(at, "err"),
        });
        const tree = await bed.get(`/api/sandbox/${containerId}/history/job-${at}/tree`);
        expect([at, tree.status]).toEqual([at, 200]);
        expect(tree.json.tree.map(({ path }: { path: string }) => path)).toContain(`file-${at}`);
      }
      for (const id of ids) expect((await bed.sh(id, "echo still here")).json.stdout).toBe("still here\n");
    });

    test("a command that ends while no server runs has its exit code and output when one is back", async () => {
      await using bed = await ServerBed.start({ driver });
      const id = await bed.sandbox();
      const script = `echo begun; sleep 1; echo done > made; cat made; exit 7; : marker-${id}`;
      const started = await bed.sh(id, script, { background: true, id: "job" });
      expect(started.status).toBe(202);
      await bed.kill();
      expect(isRunning(`marker-${id}`)).toBe(true);
      await until("the command has ended", () => !isRunning(`marker-${id}`));
      await bed.start();
      const ended = await bed.get(`/api/sandbox/${id}/exec/job?wait=30000`);
      expect(ended.json).toMatchObject({ exitCode: 7, stdout: "begun\ndone\n" });
      await bed.sh(id, "rm made", { id: "next" });
      const { json } = await bed.get(`/api/sandbox/${id}/history`);
      expect(json.history).toMatchObject([
        { id: "next", files: ["made"] },
        { id: "job", files: ["made"] },
        { id: "unknown" },
      ]);
      const rolledBack = await bed.post(`/api/sandbox/${id}/rollback`, { executionId: "job" });
      expect(rolledBack.status).toBe(200);
      expect((await bed.sh(id, "cat made")).json.stdout).toBe("done\n");
    });

    test("a command that was answered has its entry, though the server dies with the answer", async () => {
      await using bed = await ServerBed.start({ driver });
      const id = await bed.sandbox();
      for (const name of ["one", "two", "three"]) {
        const answered = await bed.sh(id, `echo ${name} > ${name}`, { id: name });
        await bed.kill();
        expect(answered.status).toBe(200);
        await bed.start();
      }
      const { json } = await bed.get(`/api/sandbox/${id}/history`);
      expect(json.history).toMatchObject([
        { id: "three", files: ["three"] },
        { id: "two", files: ["two"] },
        { id: "one", files: ["one"] },
        { id: "unknown" },
      ]);
    });

    test("a request that is repeated after the server's death runs once", async () => {
      await using bed = await ServerBed.start({ driver });
      const id = await bed.sandbox();
      const command = "echo run >> runs; sleep 1; cat runs";
      const first = bed.sh(id, command, { id: "once" }).catch(() => undefined);
      await until("it runs", async () => (await bed.get(`/api/sandbox/${id}/exec/once`)).status === 200);
      await bed.kill();
      await first;
      await bed.start();
      const again = await bed.sh(id, command, { id: "once" });
      expect(again.json).toMatchObject({ status: "success", stdout: "run\n" });
    });
  });
}
