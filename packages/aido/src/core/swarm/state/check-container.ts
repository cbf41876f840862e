import { AidoError } from "@aido/sdk/protocol";
import { BRANCH_NAME_RULE, isBranchName } from "../branch-name.ts";
import type { ContainerChanges, NewContainer } from "./change-state.ts";
import { checkSchema } from "./check-schema.ts";
import { type StoryProgress, WORKER_STATUSES, type WorkerStatus } from "./swarm-state.ts";
import { STORY_PROGRESS_SCHEMA } from "./swarm-state-schema.ts";

const CONTAINER_ID = /^[0-9a-f]{12,64}$/;
/** Tighter than the schema: what aido itself registers is known by its beginning, here and in the engine. */
const CONTAINER_NAME = /^aimi-[a-zA-Z0-9][a-zA-Z0-9_-]*$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a path must not have
const NOT_IN_PATH = /[\u0000-\u001f\u007f$]/;

/** What is registered, checked before anything is opened. */
export function checkContainer(given: NewContainer): NewContainer {
  if (!CONTAINER_ID.test(given.containerId))
    throw invalid("container id", given.containerId, "12 to 64 hexadecimal digits in lower case");
  checkContainerName(given.containerName);
  const { taskFilePath } = given;
  const isInside =
    taskFilePath !== "" && !/^[/~]/.test(taskFilePath) && !taskFilePath.split("/").includes("..");
  if (!isInside || NOT_IN_PATH.test(taskFilePath))
    throw invalid("task file path", taskFilePath, "a path relative to the project, without .., ~ and $");
  if (!isBranchName(given.branchName)) throw invalid("branch name", given.branchName, BRANCH_NAME_RULE);
  return given;
}

export function checkContainerName(name: string): string {
  if (!CONTAINER_NAME.test(name))
    throw invalid("container name", name, `it must match ${CONTAINER_NAME.source}`);
  return name;
}

/** The options of an update as they are written on a command line. */
export interface WrittenChanges {
  status?: string | undefined;
  prUrl?: string | undefined;
  storyProgress?: string | undefined;
  acpPid?: string | undefined;
}

export function readChanges(given: WrittenChanges): ContainerChanges {
  const { status, prUrl, storyProgress, acpPid } = given;
  const changes: ContainerChanges = {};
  if (status !== undefined) changes.status = readStatus(status);
  if (prUrl !== undefined) changes.prUrl = readAddress(prUrl);
  if (storyProgress !== undefined) changes.storyProgress = readProgress(storyProgress);
  if (acpPid !== undefined) changes.acpPid = readPid(acpPid);
  if (Object.keys(changes).length > 0) return changes;
  throw new AidoError("VALIDATION_ERROR", "At least one field to update is required", {
    hint: "Give --status, --pr-url, --story-progress or --acp-pid.",
  });
}

function readStatus(text: string): WorkerStatus {
  const status = WORKER_STATUSES.find((each) => each === text);
  if (status === undefined) throw invalid("--status", text, `one of ${WORKER_STATUSES.join(", ")}`);
  return status;
}

function readAddress(text: string): string {
  const [problem] = checkSchema(text, { type: "string", format: "uri", pattern: "^https?://" });
  if (problem !== undefined)
    throw invalid("--pr-url", text, "an address that begins with https:// or http://");
  return text;
}

function readProgress(text: string): StoryProgress {
  const form = '{"total":5,"completed":2,"failed":0,"inProgress":1,"pending":2}';
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalid("--story-progress", text, `JSON such as ${form}`);
  }
  const [problem] = checkSchema(value, STORY_PROGRESS_SCHEMA);
  if (problem === undefined) return value as StoryProgress;
  throw new AidoError(
    "VALIDATION_ERROR",
    `--story-progress: ${problem.field === "" ? "it" : problem.field} ${problem.message}`,
    { hint: `Write it like ${form}.` },
  );
}

function readPid(text: string): number | null {
  if (text === "null") return null;
  const pid = /^[0-9]+$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(pid) || pid < 1)
    throw invalid("--acp-pid", text, "a whole number from 1 on, or null");
  return pid;
}

function invalid(what: string, text: string, rule: string): AidoError {
  return new AidoError(
    "VALIDATION_ERROR",
    `Invalid ${what}: ${JSON.stringify(text.slice(0, 200))} (${rule})`,
  );
}
