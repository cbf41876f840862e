import { appendFileSync, existsSync, rmSync, statSync, truncateSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { OutputStream } from "@aido/sdk/protocol";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Supervisor } from "../supervisor/supervisor.ts";
import type { FollowedExec } from "./followed-exec.ts";
import { readOutput } from "./read-output.ts";
import { Recording } from "./recording.ts";

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "aido-order-"));
});

afterEach(async () => {
  await rm(directory, { recursive: true, force: true });
});

const at = (stream: OutputStream): number => {
  const path = join(directory, stream);
  return existsSync(path) ? statSync(path).size : 0;
};

const fail = (): never => expect.fail("nothing of this is to happen");

/** A recorder that goes on where the files end, as one that takes over does. */
function recorder(): { hear(stream: OutputStream, text: string): void; recording: Recording } {
  const next = { stdout: at("stdout"), stderr: at("stderr") };
  const recording = new Recording({
    execId: "exec_1",
    directory,
    supervisor: { ack: () => undefined } as unknown as Supervisor,
    from: { ...next },
    onEnd: fail,
    onDetached: fail,
    onWriteError: fail,
  });
  const hear = (stream: OutputStream, text: string) => {
    const data = Buffer.from(text);
    recording.onOutput(stream, next[stream], data);
    next[stream] += data.length;
  };
  return { hear, recording };
}

async function read(from: { stdoutOffset?: number; stderrOffset?: number } = {}): Promise<string> {
  const sizes = { stdout: at("stdout"), stderr: at("stderr") };
  const ended = { sizes: () => sizes, isEnded: () => true } as unknown as FollowedExec;
  let text = "";
  for await (const { stream, offset, data } of readOutput(directory, from, () => ended)) {
    expect(offset + data.length).toBeLessThanOrEqual(sizes[stream]);
    text += data.toString();
  }
  return text;
}

test("S0-55 two streams are read in the order in which they came, from any offsets", async () => {
  const { hear, recording } = recorder();
  for (const [stream, text] of [
    ["stdout", "a"],
    ["stdout", "b"],
    ["stderr", "C"],
    ["stdout", "d"],
    ["stderr", "E"],
    ["stderr", "F"],
    ["stdout", "g"],
  ] as const) {
    hear(stream, text);
  }
  recording.close();
  expect(await read()).toBe("abCdEFg");
  expect(await read({ stdoutOffset: 1, stderrOffset: 1 })).toBe("bdEFg");
  expect(await read({ stdoutOffset: 3 })).toBe("CEFg");
  expect(await read({ stderrOffset: 99 })).toBe("abdg");
  expect(await read({ stdoutOffset: 99, stderrOffset: 99 })).toBe("");
  expect(statSync(join(directory, "order")).size).toBe(4 * 8);
});

test("one stream has no order, also when its recorder changes", async () => {
  for (const text of ["one ", "two"]) {
    const { hear, recording } = recorder();
    hear("stderr", text);
    hear("stderr", text);
    recording.close();
  }
  expect(existsSync(join(directory, "order"))).toBe(false);
  expect(await read()).toBe("one one twotwo");
});

test("a recorder that takes over leaves what came before it before", async () => {
  const first = recorder();
  first.hear("stdout", "a");
  first.hear("stderr", "B");
  first.recording.close();
  const second = recorder();
  second.hear("stdout", "c");
  second.hear("stderr", "D");
  second.hear("stdout", "e");
  second.recording.close();
  expect(await read()).toBe("aBcDe");
});

test("without its order, or with half of it, every byte is still there", async () => {
  const { hear, recording } = recorder();
  for (let turn = 0; turn < 4; turn += 1) {
    hear("stdout", "o");
    hear("stderr", "E");
  }
  recording.close();
  const order = join(directory, "order");
  truncateSync(order, 3 * 8 + 5);
  expect(await read()).toBe("oEoooEEE");
  // A later recorder of the same disk is out of step with the torn entry.
  appendFileSync(order, Buffer.alloc(16, 7));
  expect(await read()).toBe("oEoooEEE");
  rmSync(order);
  expect(await read()).toBe("ooooEEEE");
  await mkdir(order);
  expect(await read()).toBe("ooooEEEE");
});

test("a stream of ever changing turns keeps its order small: exact at first, then by the stretch", async () => {
  const { hear, recording } = recorder();
  for (let turn = 0; turn < 70_000; turn += 1) {
    hear("stdout", "o");
    hear("stderr", "E");
  }
  for (let turn = 0; turn < 4; turn += 1) {
    hear("stdout", "x".repeat(16_000));
    hear("stderr", "Y".repeat(16_000));
  }
  recording.close();
  expect(statSync(join(directory, "order")).size).toBeLessThan((65_536 + 8) * 8);
  const text = await read();
  expect(text).toHaveLength(140_000 + 8 * 16_000);
  expect(text.startsWith("oE".repeat(32_000))).toBe(true);
  expect(text.indexOf("Y")).toBeLessThan(text.lastIndexOf("x"));
});
