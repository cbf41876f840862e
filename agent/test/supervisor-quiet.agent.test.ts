import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { END_FLAG, EXEC_FLAG } from "../../packages/aido/src/core/supervisor/protocol.ts";
import type { AgentClient } from "./agent-client.ts";
import { AgentProcess, descendants } from "./agent-process.ts";

/** A watch that has told that it is ready, and gives the bytes of each answer. */
async function watch(client: AgentClient, root: string, id = "watch") {
  client.exec(id, ["watch", root, ".", "sync"], { flags: EXEC_FLAG.builtin | EXEC_FLAG.stdin });
  let told = 0;
  const next = () =>
    client.until(() => {
      const parts = client.frames.flatMap((frame) =>
        frame.type === "output" && frame.id === id ? [frame.bytes] : [],
      );
      const bytes = Buffer.concat(parts).subarray(told);
      if (bytes.at(-1) !== 0) return undefined;
      told += bytes.length;
      return bytes;
    }, "an answer");
  await next();
  let asked = 0;
  return {
    ask: async () => {
      client.stdin(id, asked++, Buffer.from("?"));
      return (await next()).toString("latin1");
    },
  };
}

async function isQuiet(client: AgentClient, id: string, ...argv: string[]): Promise<boolean> {
  return ((await client.run(id, argv)).flags & END_FLAG.quiet) !== 0;
}

test("a command that changed nothing since a watch was asked ends quietly, any other does not", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const tree = join(agent.directory, "tree");
  await mkdir(tree, { mode: 0o777 });
  expect(await isQuiet(client, "unwatched", "true")).toBe(false);
  const { ask } = await watch(client, tree);
  expect(await isQuiet(client, "first", "true")).toBe(true);
  expect(await isQuiet(client, "second", "ls", tree)).toBe(true);
  await writeFile(join(tree, "by-others"), "1");
  expect(await isQuiet(client, "third", "true")).toBe(false);
  expect(await ask()).toContain("by-others");
  expect(await isQuiet(client, "fourth", "true")).toBe(true);
  expect(await isQuiet(client, "fifth", "touch", join(tree, "own"))).toBe(false);
  expect(await isQuiet(client, "sixth", "true")).toBe(false);
  expect(await ask()).toContain("own");
  expect(await isQuiet(client, "seventh", "true")).toBe(true);
});

test("a change that the watch has taken in and not told is not quiet, however long ago it was", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const tree = join(agent.directory, "tree");
  await mkdir(tree, { mode: 0o777 });
  const { ask } = await watch(client, tree);
  // The watch has looked at the new directory when a change inside it is told: it watches it by then.
  await client.run("make", ["mkdir", join(tree, "d")]);
  for (let round = 0; round < 20; round++) expect(await isQuiet(client, `look${round}`, "true")).toBe(false);
  expect(await ask()).toContain("d");
  expect(await isQuiet(client, "inside", "touch", join(tree, "d/f"))).toBe(false);
  expect(await ask()).toContain("d/f");
  expect(await isQuiet(client, "after", "true")).toBe(true);
});

test("a watch that lost events is quiet again only when it has told so", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const tree = join(agent.directory, "tree");
  await mkdir(tree, { mode: 0o777 });
  const { ask } = await watch(client, tree);
  const supervisor = await agent.pid();
  const [tool = 0] = await descendants(supervisor);
  // It would let its tool go on.
  process.kill(supervisor, "SIGSTOP");
  process.kill(tool, "SIGSTOP");
  await agent.poll(() => readFileSync(`/proc/${tool}/stat`, "utf8").includes(") T "), "a stopped watch");
  const [a, b] = [openSync(join(tree, "a"), "w"), openSync(join(tree, "b"), "w")];
  const limit = Number(readFileSync("/proc/sys/fs/inotify/max_queued_events", "utf8"));
  // The same event twice in a row would be one.
  for (let written = 0; written < limit + 20; written += 2) for (const fd of [a, b]) writeSync(fd, "x");
  for (const fd of [a, b]) closeSync(fd);
  process.kill(tool, "SIGCONT");
  process.kill(supervisor, "SIGCONT");
  expect(await isQuiet(client, "before", "true")).toBe(false);
  expect((await ask()).charCodeAt(0)).toBe(4);
  // Watches that were set anew have told of the old ones' end, which is no change.
  await ask();
  expect(await isQuiet(client, "after", "true")).toBe(true);
  expect(await isQuiet(client, "again", "touch", join(tree, "c"))).toBe(false);
  expect(await ask()).toContain("c");
});

test("another connection's watch, and one that has ended, make nothing quiet", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  await watch(client, agent.directory);
  const other = await agent.open();
  expect(await isQuiet(other, "theirs", "true")).toBe(false);
  expect(await isQuiet(client, "ours", "true")).toBe(true);
  client.stdinClose("watch", 0);
  await client.wait("end", ({ id }) => id === "watch");
  expect(await isQuiet(client, "unwatched", "true")).toBe(false);
});
