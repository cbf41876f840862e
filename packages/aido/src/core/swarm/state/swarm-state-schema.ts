import { BRANCH_NAME_PATTERN } from "../branch-name.ts";
import type { JsonSchema } from "./check-schema.ts";
import { WORKER_STATUSES } from "./swarm-state.ts";

const COUNT: JsonSchema = { type: "integer", minimum: 0 };
const TIME: JsonSchema = { type: "string", format: "date-time" };

export const STORY_PROGRESS_SCHEMA: JsonSchema = {
  type: "object",
  additionalProperties: false,
  required: ["total", "completed", "failed", "inProgress", "pending"],
  properties: { total: COUNT, completed: COUNT, failed: COUNT, inProgress: COUNT, pending: COUNT },
};

const CONTAINER: JsonSchema = {
  type: "object",
  additionalProperties: false,
  required: [
    "containerId",
    "containerName",
    "taskFilePath",
    "branchName",
    "status",
    "storyProgress",
    "createdAt",
    "updatedAt",
  ],
  properties: {
    containerId: { type: "string", pattern: "^[0-9a-f]{12,64}$" },
    containerName: { type: "string", pattern: "^[a-zA-Z0-9][a-zA-Z0-9_.-]*$" },
    taskFilePath: { type: "string", pattern: "^[^/]", description: "relative to the project" },
    branchName: { type: "string", pattern: BRANCH_NAME_PATTERN },
    status: { type: "string", enum: WORKER_STATUSES },
    prUrl: { type: ["string", "null"], format: "uri" },
    storyProgress: STORY_PROGRESS_SCHEMA,
    createdAt: TIME,
    updatedAt: TIME,
    acpPid: { type: ["integer", "null"], minimum: 1 },
  },
};

/**
 * The one description of the file's form: aido checks with it, and the build writes it out as
 * `swarm-state.schema.json` for other tools.
 */
export const SWARM_STATE_SCHEMA: JsonSchema = {
  $schema: "http://json-schema.org/draft-07/schema#",
  $id: "https://aimi.engineering/schemas/swarm-state/v1",
  title: "Swarm state",
  type: "object",
  additionalProperties: false,
  required: ["swarmId", "createdAt", "updatedAt", "containers"],
  properties: {
    swarmId: {
      type: "string",
      pattern: "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$",
    },
    createdAt: TIME,
    updatedAt: TIME,
    containers: { type: "array", items: CONTAINER },
  },
};
