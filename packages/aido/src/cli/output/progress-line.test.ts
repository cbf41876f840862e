import { expect, test } from "vitest";
import { MemorySink } from "./memory-sink.ts";
import { ProgressLine } from "./progress-line.ts";

test("on a terminal one line is drawn again and taken away at the end", () => {
  const sink = new MemorySink(20);
  const progress = new ProgressLine(sink, "redraw");
  progress.show("pulling");
  progress.show("pulling");
  progress.show("starting a sandbox with a long name");
  progress.clear();
  progress.clear();
  expect(sink.text).toBe("\r\u001b[Kpulling\r\u001b[Kstarting a sandbox…\r\u001b[K");
});

test("elsewhere steps are plain lines, without escapes from image names", () => {
  const sink = new MemorySink();
  const progress = new ProgressLine(sink, "lines");
  progress.show("pulling \u001b[2J");
  progress.clear();
  expect(sink.text).toBe("pulling \\x1b[2J\n");
});

test("quiet shows nothing", () => {
  const sink = new MemorySink(80);
  const progress = new ProgressLine(sink, "quiet");
  progress.show("pulling");
  progress.clear();
  expect(sink.text).toBe("");
});
