import { expect, test } from "vitest";
import { splitTag } from "./pull-image.ts";
import { PullProgress } from "./pull-progress.ts";

test("many events become one line per finished layer", () => {
  const steps: string[] = [];
  const progress = new PullProgress("tool:1", (step) => steps.push(step));
  const take = (event: object) => progress.take(JSON.stringify(event));
  take({ status: "Pulling from tool", id: "1" });
  take({ status: "Pulling fs layer", progressDetail: {}, id: "aa" });
  take({ status: "Already exists", id: "bb" });
  for (let current = 0; current < 5; current += 1) {
    take({ status: "Downloading", progressDetail: { current, total: 3_000_000 }, id: "aa" });
  }
  take({ status: "Pull complete", progressDetail: {}, id: "aa" });
  progress.take("not json");
  progress.take("null");
  expect(progress.finished).toBe(false);
  take({ status: "Status: Downloaded newer image for tool:1" });
  expect(progress).toMatchObject({ finished: true, error: undefined });
  expect(steps).toEqual([
    "Pulling tool:1",
    "Pulling tool:1: 1 of 2 layers",
    "Pulling tool:1: 1 of 2 layers, 3.0 MB",
    "Pulling tool:1: 2 of 2 layers, 3.0 MB",
    "Pulled tool:1",
  ]);
});

test("an error in the middle is kept as the reason, in one line", () => {
  const progress = new PullProgress("tool:1", undefined);
  progress.take(JSON.stringify({ error: "short", errorDetail: { message: "long\nreason" } }));
  expect(progress.error).toBe("long reason");
});

test.each([
  ["tool", "tool", "latest"],
  ["tool:1", "tool", "1"],
  ["host:5000/tool", "host:5000/tool", "latest"],
  ["host:5000/tool:2", "host:5000/tool", "2"],
  ["tool@sha256:ab", "tool", "sha256:ab"],
  ["tool:1@sha256:ab", "tool:1", "sha256:ab"],
])("%s is %s with tag %s", (image, name, tag) => {
  expect(splitTag(image)).toEqual({ name, tag });
});
