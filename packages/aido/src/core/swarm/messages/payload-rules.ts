import { BRANCH_NAME_RULE, isBranchName } from "../branch-name.ts";
import { STORY_ID, STORY_STATUSES } from "../tasks/task-file.ts";
import { type AgentUsage, COMPLETION_STATUSES, type SwarmMessage } from "./message.ts";
import { messageError } from "./message-error.ts";

type Payload = Readonly<Record<string, unknown>>;
type PayloadOf<Type extends SwarmMessage["type"]> = Extract<SwarmMessage, { type: Type }>["payload"];

const MAX = { output: 2000, message: 2000, errors: 50, error: 500, path: 1000, url: 2000, files: 200 };
const ENV_NAME = /^[A-Z_][A-Z0-9_]*$/;
/** Values reach shells of other tools' making. */
const ENV_UNSAFE = /[\n\r\0;`]|&&|\|\||\$\(/;
const ERROR_CODE = /^[A-Z][A-Z0-9_]*$/;

/** One reader per type. What a payload has beyond its fields is left out. */
export const PAYLOADS: { readonly [Type in SwarmMessage["type"]]: (payload: Payload) => PayloadOf<Type> } = {
  "task-request": (payload) => ({
    taskFilePath: text(payload, "taskFilePath", MAX.path, taskFilePathProblem),
    branchName: text(payload, "branchName", 200, (name) =>
      isBranchName(name) ? undefined : `is not a branch name: ${BRANCH_NAME_RULE}`,
    ),
    repoUrl: text(payload, "repoUrl", MAX.url, (url) =>
      isRepositoryUrl(url) ? undefined : "is not an https or ssh address of a repository",
    ),
    envVars: envVars(payload["envVars"]),
  }),
  "progress-update": (payload) => ({
    // A split story's id has a letter at its end in task files, so it has one here.
    storyId: text(payload, "storyId", 20, (id) =>
      STORY_ID.test(id) ? undefined : "is not of the form US-001",
    ),
    status: oneOf(payload, "status", STORY_STATUSES),
    output: text(payload, "output", MAX.output),
    ...(payload["usage"] === undefined ? {} : { usage: usage(payload["usage"]) }),
    ...(payload["changedFiles"] === undefined ? {} : { changedFiles: paths(payload["changedFiles"]) }),
  }),
  completion: (payload) => ({
    status: oneOf(payload, "status", COMPLETION_STATUSES),
    prUrl:
      payload["prUrl"] === null
        ? null
        : text(payload, "prUrl", MAX.url, (url) =>
            isWebUrl(url, ["http:", "https:"]) ? undefined : "is neither null nor an http address",
          ),
    errors: errors(payload["errors"]),
  }),
  error: (payload) => ({
    code: text(payload, "code", 100, (code) =>
      ERROR_CODE.test(code) ? undefined : "is not written in capitals, digits and _",
    ),
    message: text(payload, "message", MAX.message),
  }),
};

/** Also kept by the host before it sends one: relative, below the tasks directory, nothing a shell would expand. */
export function taskFilePathProblem(path: string): string | undefined {
  if (!path.endsWith(".json")) return "does not end with .json";
  if (!path.startsWith(".aimi/tasks/")) return "is not below .aimi/tasks/";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
  if (/\.\.|[~$\\\u0000-\u001f\u007f]/.test(path))
    return "holds `..`, `~`, `$`, a backslash or a control character";
  return undefined;
}

/** `https://…`, `ssh://…` and `user@host:path`; a host that begins with `-` would be an option of ssh. */
export function isRepositoryUrl(url: string): boolean {
  if (/^[a-zA-Z0-9_][a-zA-Z0-9_.-]*@[a-zA-Z0-9][a-zA-Z0-9.-]*:[^\s\0:-][^\s\0]*$/.test(url))
    return isVisible(url);
  return isWebUrl(url, ["https:", "ssh:"]);
}

function isWebUrl(url: string, protocols: readonly string[]): boolean {
  if (!isVisible(url) || !/^[a-z]+:\/\//.test(url) || !URL.canParse(url)) return false;
  const { protocol, hostname, username } = new URL(url);
  return protocols.includes(protocol) && /^[a-zA-Z0-9[]/.test(hostname) && !username.startsWith("-");
}

/** The address parser drops white space and control characters, so it is asked only about what has none. */
function isVisible(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text) && !text.includes("\\");
}

function envVars(value: unknown): Readonly<Record<string, string>> {
  if (value === undefined) return {};
  if (!isRecord(value)) throw wrong("envVars", "is not an object");
  const entries = Object.entries(value).map(([name, content]): [string, string] => {
    if (!ENV_NAME.test(name)) throw wrong("envVars", "has a name that is not of capitals, digits and _");
    // Values are secrets: only the name is told.
    if (typeof content !== "string") throw wrong(`envVars.${name}`, "is not a text");
    if (ENV_UNSAFE.test(content)) throw wrong(`envVars.${name}`, "holds a newline, NUL or shell syntax");
    return [name, content];
  });
  return Object.fromEntries(entries);
}

function usage(value: unknown): AgentUsage {
  if (!isRecord(value)) throw wrong("usage", "is not an object");
  const [turns, inputTokens, outputTokens] = ["turns", "inputTokens", "outputTokens"].map((field) => {
    const count = value[field];
    if (typeof count === "number" && Number.isSafeInteger(count) && count >= 0) return count;
    throw wrong(`usage.${field}`, "is not a count");
  }) as [number, number, number];
  return { turns, inputTokens, outputTokens };
}

function paths(value: unknown): readonly string[] {
  if (!Array.isArray(value)) throw wrong("changedFiles", "is not a list");
  if (value.length > MAX.files) throw wrong("changedFiles", `has more than ${MAX.files} entries`);
  return value.map((path: unknown) => text({ changedFiles: path }, "changedFiles", MAX.path));
}

function errors(value: unknown): readonly string[] {
  if (!Array.isArray(value)) throw wrong("errors", "is not a list");
  if (value.length > MAX.errors) throw wrong("errors", `has more than ${MAX.errors} entries`);
  return value.map((entry: unknown, index) =>
    text({ [`errors[${index}]`]: entry }, `errors[${index}]`, MAX.error),
  );
}

function text(
  payload: Payload,
  field: string,
  max: number,
  problemOf: (value: string) => string | undefined = () => undefined,
): string {
  const value = Object.hasOwn(payload, field) ? payload[field] : undefined;
  if (value === undefined) throw wrong(field, "is missing");
  if (typeof value !== "string") throw wrong(field, "is not a text");
  // Counted in characters: a short text in UTF-16 units is short in characters too.
  if (value.length > max && [...value].length > max) throw wrong(field, `has more than ${max} characters`);
  const problem = problemOf(value);
  if (problem !== undefined) throw wrong(field, problem);
  return value;
}

function oneOf<Value extends string>(payload: Payload, field: string, values: readonly Value[]): Value {
  const given = text(payload, field, 50);
  const value = values.find((value) => value === given);
  if (value === undefined) throw wrong(field, `is not one of ${values.join(", ")}`);
  return value;
}

function wrong(field: string, problem: string) {
  return messageError(`payload.${field}`, problem, "TASK_FILE_INVALID");
}

export function isRecord(value: unknown): value is Payload {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
