import { z } from "zod";
import { EXEC_STATUSES } from "../protocol/exec.ts";
import { errorReply } from "./error.ts";
import { argv, date, environment, execId, filePath, milliseconds, sandboxReference } from "./values.ts";

const terminal = z.strictObject({
  rows: z.number().int().min(1).max(1000),
  cols: z.number().int().min(1).max(1000),
});

/** `containerId`, `command` and `files`, and what else an exec can be given. */
export const execBody = z.strictObject({
  containerId: sandboxReference,
  command: argv,
  files: z.record(filePath, z.string()).optional(),
  id: execId.optional(),
  /** Answer 202 at once; the output is read by offset or stream. */
  background: z.boolean().optional(),
  timeout: milliseconds.optional(),
  killGrace: milliseconds.max(600_000).optional(),
  env: environment.optional(),
  cwd: filePath.optional(),
  user: z.string().min(1).max(64).optional(),
  /** The whole of standard input; `true` keeps it open for later writes. */
  stdin: z.union([z.string(), z.boolean()]).optional(),
  pty: terminal.optional(),
  gitTracking: z.boolean().optional(),
  /** Start the sandbox first when it is stopped; its own setting when absent. */
  autoResume: z.boolean().optional(),
});
export type ExecBody = z.infer<typeof execBody>;

export const execState = z.object({
  id: z.string(),
  containerId: z.string(),
  command: z.array(z.string()),
  state: z.enum(EXEC_STATUSES),
  exitCode: z.number().nullable(),
  signal: z.string().nullable(),
  /** Why the program could not be started; absent when it could. */
  startError: errorReply.shape.error.optional(),
  startedAt: date,
  endedAt: date.nullable(),
  duration: z.number().nullable(),
  stdoutBytes: z.number(),
  stderrBytes: z.number(),
});

/** `success` for exit code 0, `error` for every other end, `running` until then. */
export const execReply = execState.extend({
  status: z.enum(["success", "error", "running"]),
  stdout: z.string(),
  stderr: z.string(),
  /** Where the next read goes on. */
  stdoutOffset: z.number(),
  stderrOffset: z.number(),
  /** True when more output is recorded than this answer carries. */
  truncated: z.boolean().optional(),
  error: z.string().optional(),
  /** When a limit of its own ended the command. */
  errorCode: z.enum(["EXECUTION_TIMEOUT", "OUT_OF_MEMORY"]).optional(),
});
export type ExecReply = z.infer<typeof execReply>;

export const execListQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(1000).optional(),
  /** Only commands started before the one with this id: the last of the page before. */
  before: execId.optional(),
});
export const execListReply = z.object({ execs: z.array(execState) });

export const execOutputQuery = z.strictObject({
  stdoutOffset: z.coerce.number().int().nonnegative().optional(),
  stderrOffset: z.coerce.number().int().nonnegative().optional(),
  /** Milliseconds to wait for the end before answering. */
  wait: z.coerce.number().int().min(0).max(60_000).optional(),
  /** `base64` carries bytes that are not UTF-8 unchanged. */
  encoding: z.enum(["utf8", "base64"]).optional(),
});

export const signalBody = z.strictObject({
  signal: z
    .string()
    .regex(/^(SIG)?[A-Z0-9]+$/)
    .optional(),
  graceMs: milliseconds.max(600_000).optional(),
});
export const resizeBody = terminal;
export const okReply = z.object({ status: z.literal("success") });
