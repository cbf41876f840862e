import { expect, test } from "vitest";
import { z } from "zod";
import { checkSchema } from "./check-schema.ts";
import { SWARM_STATE_SCHEMA } from "./swarm-state-schema.ts";

const CONTAINER = {
  containerId: "4f0c2b9a81de",
  containerName: "aimi-swarm-login",
  taskFilePath: ".aimi/tasks/2026-03-01-login-tasks.json",
  branchName: "feat/login",
  status: "running",
  prUrl: null,
  storyProgress: { total: 5, completed: 2, failed: 0, inProgress: 1, pending: 2 },
  createdAt: "2026-03-01T10:00:00Z",
  updatedAt: "2026-03-01T10:05:00.123Z",
  acpPid: 4711,
};
const STATE = {
  swarmId: "7216b46d-9ce4-4966-9cdd-9dddd1e100a8",
  createdAt: "2026-03-01T10:00:00Z",
  updatedAt: "2026-03-01T10:05:00Z",
  containers: [CONTAINER],
};
const { prUrl: _url, acpPid: _pid, ...REQUIRED } = CONTAINER;
const container = (changes: object) => ({ ...STATE, containers: [{ ...CONTAINER, ...changes }] });
const progress = (changes: object) =>
  container({ storyProgress: { ...CONTAINER.storyProgress, ...changes } });
const without = (value: object, name: string) =>
  Object.fromEntries(Object.entries(value).filter(([key]) => key !== name));

const GOOD: Record<string, unknown> = {
  "no container": { ...STATE, containers: [] },
  "one container": STATE,
  "without what may be missing": { ...STATE, containers: [REQUIRED] },
  "a pull request": container({ prUrl: "https://git.example/team/shop/pull/7" }),
  "no process": container({ acpPid: null }),
  "the longest id": container({ containerId: "a".repeat(64) }),
  "a name of another tool": container({ containerName: "Worker_1.x-y" }),
  "no story": progress({ total: 0, completed: 0, inProgress: 0, pending: 0 }),
  ...Object.fromEntries(
    ["pending", "running", "completed", "failed", "stopped"].map((status) => [status, container({ status })]),
  ),
};

const BAD: Record<string, unknown> = {
  null: null,
  "a list": [STATE],
  text: "state",
  "a field too many": { ...STATE, schemaVersion: "2" },
  "an id in capitals": { ...STATE, swarmId: STATE.swarmId.toUpperCase() },
  "an id of another version": { ...STATE, swarmId: "7216b46d-9ce4-1966-9cdd-9dddd1e100a8" },
  "a time without a zone": { ...STATE, createdAt: "2026-03-01T10:00:00" },
  "a day that is none": { ...STATE, createdAt: "2026-02-30T10:00:00Z" },
  "a time that is a number": { ...STATE, updatedAt: 1_772_000_000 },
  "containers by name": { ...STATE, containers: { x: CONTAINER } },
  "a container that is null": { ...STATE, containers: [null] },
  "a container's field too many": container({ host: "x" }),
  "a short container id": container({ containerId: "4f0c2b9a81d" }),
  "a long container id": container({ containerId: "a".repeat(65) }),
  "a container id with a line break": container({ containerId: "4f0c2b9a81de\n" }),
  "an empty name": container({ containerName: "" }),
  "a name that begins with a dash": container({ containerName: "-x" }),
  "an absolute task file": container({ taskFilePath: "/etc/passwd" }),
  "no task file": container({ taskFilePath: "" }),
  "a branch with a dot": container({ branchName: "feat/../x" }),
  "a branch that is an option": container({ branchName: "--force" }),
  "another status": container({ status: "paused" }),
  "an address that is none": container({ prUrl: "pull/7" }),
  "a process 0": container({ acpPid: 0 }),
  "half a process": container({ acpPid: 1.5 }),
  "a process as text": container({ acpPid: "1" }),
  "a negative count": progress({ failed: -1 }),
  "half a story": progress({ completed: 0.5 }),
  "a count as text": progress({ total: "5" }),
  "a count too many": progress({ skipped: 1 }),
  ...Object.fromEntries(Object.keys(STATE).map((name) => [`a state without ${name}`, without(STATE, name)])),
  ...Object.fromEntries(
    Object.keys(REQUIRED).map((name) => [
      `a container without ${name}`,
      { ...STATE, containers: [without(CONTAINER, name)] },
    ]),
  ),
  ...Object.fromEntries(
    Object.keys(CONTAINER.storyProgress).map((name) => [
      `progress without ${name}`,
      container({ storyProgress: without(CONTAINER.storyProgress, name) }),
    ]),
  ),
};

/** Another reader of the schema, which knows nothing of ours. */
const shipped = z.fromJSONSchema(JSON.parse(JSON.stringify(SWARM_STATE_SCHEMA)));

test.each(Object.entries(GOOD))("S1-49 fits the schema, by our check and by another's: %s", (_, state) => {
  expect(checkSchema(state, SWARM_STATE_SCHEMA)).toEqual([]);
  expect(shipped.safeParse(state).error).toBeUndefined();
});

test.each(Object.entries(BAD))("S1-49 does not fit, by our check and by another's: %s", (_, state) => {
  expect(checkSchema(state, SWARM_STATE_SCHEMA)).not.toEqual([]);
  expect(shipped.safeParse(state).success).toBe(false);
});

test("S1-49 the schema is draft-07 under its known address, and closed at every level", () => {
  expect(SWARM_STATE_SCHEMA).toMatchObject({
    $schema: "http://json-schema.org/draft-07/schema#",
    $id: "https://aimi.engineering/schemas/swarm-state/v1",
    additionalProperties: false,
    required: ["swarmId", "createdAt", "updatedAt", "containers"],
  });
  const worker = SWARM_STATE_SCHEMA.properties?.["containers"]?.items;
  expect(worker?.additionalProperties).toBe(false);
  expect(worker?.properties?.["storyProgress"]?.additionalProperties).toBe(false);
});

test("a time may have an offset, as its standard says", () => {
  for (const createdAt of ["2026-03-01T10:00:00+01:00", "2024-02-29T23:59:59.5-00:30"])
    expect(checkSchema({ ...STATE, createdAt }, SWARM_STATE_SCHEMA)).toEqual([]);
  for (const createdAt of ["2026-03-01T24:00:00Z", "2025-02-29T10:00:00Z", "2026-03-01T10:00:00+1:00", "now"])
    expect(checkSchema({ ...STATE, createdAt }, SWARM_STATE_SCHEMA)).toHaveLength(1);
});

test("a problem names its field, and not more are told than anybody reads", () => {
  expect(
    checkSchema({ ...STATE, containers: [CONTAINER, { ...CONTAINER, status: "x" }] }, SWARM_STATE_SCHEMA),
  ).toEqual([
    { field: "containers[1].status", message: "is not one of pending, running, completed, failed, stopped" },
  ]);
  expect(checkSchema(progress({ total: "5" }), SWARM_STATE_SCHEMA)).toEqual([
    { field: "containers[0].storyProgress.total", message: "is not a whole number" },
  ]);
  expect(checkSchema({ ...STATE, containers: Array(1000).fill(null) }, SWARM_STATE_SCHEMA)).toHaveLength(10);
});

test("a field that every object has by birth is not a known one", () => {
  const state = JSON.parse(JSON.stringify(STATE).replace("{", '{"__proto__":{},"constructor":1,'));
  expect(checkSchema(state, SWARM_STATE_SCHEMA).map(({ field }) => field)).toEqual([
    "__proto__",
    "constructor",
  ]);
});
