import { expect, test } from "vitest";
import { addContainer, removeContainer, removeEnded, startSwarm, updateContainer } from "./change-state.ts";
import { checkContainer, checkContainerName, readChanges } from "./check-container.ts";
import { checkSchema } from "./check-schema.ts";
import { type SwarmState, WORKER_STATUSES } from "./swarm-state.ts";
import { SWARM_STATE_SCHEMA } from "./swarm-state-schema.ts";

const EARLY = new Date("2026-01-01T00:00:00Z");
const LATE = new Date("2026-01-02T00:00:00Z");
const ID = "7216b46d-9ce4-4966-9cdd-9dddd1e100a8";
const GIVEN = {
  containerId: "4f0c2b9a81de",
  containerName: "aimi-a",
  taskFilePath: ".aimi/tasks/a-tasks.json",
  branchName: "feat/a",
};
const empty = () => startSwarm(undefined, { swarmId: ID, now: EARLY, force: false });
const swarm = (...names: string[]): SwarmState =>
  names.reduce((state, containerName) => addContainer(state, { ...GIVEN, containerName }, EARLY), empty());

test("S1-39 a new swarm has an id, its time and no container", () => {
  expect(empty()).toEqual({
    swarmId: ID,
    createdAt: "2026-01-01T00:00:00.000Z",
    updatedAt: "2026-01-01T00:00:00.000Z",
    containers: [],
  });
  expect(checkSchema(empty(), SWARM_STATE_SCHEMA)).toEqual([]);
});

test.each(WORKER_STATUSES)(
  "S1-39 a swarm with a container that is %s is replaced only as it may be",
  (status) => {
    const before = updateContainer(swarm("aimi-a"), "aimi-a", { status }, EARLY);
    const start = (force: boolean) => startSwarm(before, { swarmId: ID, now: LATE, force });
    if (status === "pending" || status === "running") {
      expect(() => start(false)).toThrow(
        expect.objectContaining({
          code: "SWARM_ACTIVE",
          message: expect.stringContaining("1 pending or running"),
        }),
      );
    } else {
      expect(start(false).containers).toEqual([]);
    }
    expect(start(true).containers).toEqual([]);
  },
);

test("S1-40 S1-32 a container that is added is pending, without progress, and valid", () => {
  const state = addContainer(empty(), GIVEN, LATE);
  const time = LATE.toISOString();
  expect(state).toEqual({
    ...empty(),
    updatedAt: time,
    containers: [
      {
        ...GIVEN,
        status: "pending",
        prUrl: null,
        storyProgress: { total: 0, completed: 0, failed: 0, inProgress: 0, pending: 0 },
        createdAt: time,
        updatedAt: time,
        acpPid: null,
      },
    ],
  });
  expect(checkSchema(state, SWARM_STATE_SCHEMA)).toEqual([]);
});

test("S1-40 a name is there once", () => {
  expect(() => addContainer(swarm("aimi-a"), GIVEN, LATE)).toThrow(
    expect.objectContaining({ code: "CONTAINER_NAME_TAKEN" }),
  );
});

test("S1-41 an update changes what is given and both times, and nothing else", () => {
  const before = swarm("aimi-a", "aimi-b");
  const after = updateContainer(before, "aimi-b", { status: "running", acpPid: 7, prUrl: undefined }, LATE);
  expect(after.updatedAt).toBe(LATE.toISOString());
  expect(after.containers[0]).toEqual(before.containers[0]);
  expect(after.containers[1]).toEqual({
    ...before.containers[1],
    status: "running",
    acpPid: 7,
    updatedAt: LATE.toISOString(),
  });
  expect(before).toEqual(swarm("aimi-a", "aimi-b"));
  expect(updateContainer(after, "aimi-b", { acpPid: null }, LATE).containers[1]?.acpPid).toBeNull();
});

test("S1-42 a container that is removed is gone and the others stay", () => {
  const after = removeContainer(swarm("aimi-a", "aimi-b"), "aimi-a", LATE);
  expect(after.containers.map(({ containerName }) => containerName)).toEqual(["aimi-b"]);
  expect(after.updatedAt).toBe(LATE.toISOString());
});

test("S1-41 S1-42 what is not there can be neither changed nor removed", () => {
  const unknown = expect.objectContaining({ code: "CONTAINER_NOT_FOUND" });
  expect(() => updateContainer(empty(), "aimi-a", { status: "failed" }, LATE)).toThrow(unknown);
  expect(() => removeContainer(empty(), "aimi-a", LATE)).toThrow(unknown);
});

test("S1-45 S1-36 a cleanup removes what completed, failed or was stopped", () => {
  let state = swarm(...WORKER_STATUSES.map((status) => `aimi-${status}`));
  for (const status of WORKER_STATUSES) state = updateContainer(state, `aimi-${status}`, { status }, EARLY);
  const after = removeEnded(state, LATE);
  expect(after.containers.map(({ status }) => status)).toEqual(["pending", "running"]);
  expect(after.updatedAt).toBe(LATE.toISOString());
  expect(removeEnded(after, LATE)).toBe(after);
});

test.each([
  ["containerId", "4F0C2B9A81DE"],
  ["containerId", "4f0c2b9a81d"],
  ["containerId", "4f0c2b9a81de\n"],
  ["containerName", "login"],
  ["containerName", "aimi-"],
  ["containerName", "aimi-a.b"],
  ["containerName", "aimi-a b"],
  ["taskFilePath", ""],
  ["taskFilePath", "/etc/passwd"],
  ["taskFilePath", ".aimi/tasks/../../x.json"],
  ["taskFilePath", "~/x.json"],
  ["taskFilePath", "$HOME/x.json"],
  ["taskFilePath", "a\nb.json"],
  ["branchName", ""],
  ["branchName", "--force"],
  ["branchName", "a..b"],
  ["branchName", "a b"],
])("S1-40 %s cannot be %j", (field, value) => {
  expect(() => checkContainer({ ...GIVEN, [field]: value })).toThrow(
    expect.objectContaining({ code: "VALIDATION_ERROR", message: expect.stringMatching(/^Invalid /) }),
  );
});

test("S1-40 what may be registered is taken as it is", () => {
  expect(checkContainer(GIVEN)).toEqual(GIVEN);
  expect(checkContainerName("aimi-swarm_A-1")).toBe("aimi-swarm_A-1");
});

test("S1-41 options become fields", () => {
  const counts = { total: 5, completed: 2, failed: 0, inProgress: 1, pending: 2 };
  const written = {
    status: "stopped",
    prUrl: "https://x/1",
    storyProgress: JSON.stringify(counts),
    acpPid: "12",
  };
  expect(readChanges(written)).toEqual({
    status: "stopped",
    prUrl: "https://x/1",
    storyProgress: counts,
    acpPid: 12,
  });
  expect(readChanges({ acpPid: "null" })).toEqual({ acpPid: null });
});

test.each([
  [{}],
  [{ status: "" }],
  [{ status: "done" }],
  [{ prUrl: "" }],
  [{ prUrl: "pull/7" }],
  [{ prUrl: "javascript:alert(1)" }],
  [{ prUrl: "https://x/\u001b[2J" }],
  [{ storyProgress: "5" }],
  [{ storyProgress: "{" }],
  [{ storyProgress: '{"total":5}' }],
  [{ storyProgress: '{"total":5,"completed":2,"failed":0,"inProgress":1,"pending":-2}' }],
  [{ storyProgress: '{"total":5,"completed":2,"failed":0,"inProgress":1,"pending":2,"skipped":1}' }],
  [{ acpPid: "0" }],
  [{ acpPid: "-1" }],
  [{ acpPid: "1e3" }],
  [{ acpPid: "" }],
  [{ acpPid: "99999999999999999999" }],
])("S1-41 an update by %j is refused", (written) => {
  expect(() => readChanges(written)).toThrow(expect.objectContaining({ code: "VALIDATION_ERROR" }));
});
