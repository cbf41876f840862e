import type {
  BatchCollectRequest,
  BatchCreateRequest,
  BatchExecRequest,
  BatchTaskRequest,
  ExecJobRequest,
  PromptRequest,
  SandboxCreateRequest,
  SandboxIdRequest,
  SandboxSnapshotRequest,
  SshKeyRequest,
  TaskRequest,
  WorkflowControlRequest,
  WorkflowCreateRequest,
} from "./job-requests.ts";
import type {
  BatchCollectResult,
  BatchCreateResult,
  BatchExecResult,
  BatchTaskResult,
  ExecJobResult,
  PromptResult,
  SandboxCreateResult,
  SnapshotResult,
  SshProvisionResult,
  SshRevokeResult,
  TaskResult,
} from "./job-results.ts";
import type { WorkflowCanceled, WorkflowCreated, WorkflowExecution, WorkflowTickResult } from "./workflow.ts";

/** Every job by name. The numbers are public: chains and callers send them. */
export const JOBS = {
  SANDBOX_CREATE: 0,
  SANDBOX_STOP: 1,
  SANDBOX_RESUME: 2,
  SANDBOX_DELETE: 3,
  SANDBOX_SNAPSHOT: 4,
  EXEC: 10,
  PROMPT: 11,
  TASK: 12,
  BATCH_CREATE: 20,
  BATCH_TASK: 21,
  BATCH_EXEC: 22,
  BATCH_COLLECT: 23,
  WORKFLOW_CREATE: 30,
  WORKFLOW_TRIGGER: 31,
  WORKFLOW_CANCEL: 32,
  /** The scheduler's own; refused from outside. */
  WORKFLOW_TICK: 33,
  SSH_PROVISION: 40,
  SSH_REVOKE: 41,
} as const;
export type JobName = keyof typeof JOBS;
export type JobId = (typeof JOBS)[JobName];
export const JOB_NAMES = Object.keys(JOBS) as readonly JobName[];

/** `10`, `"10"`, `EXEC`, `JOB_EXEC` and `exec` are the same job; undefined when there is none. */
export function findJob(job: number | string): JobName | undefined {
  const word = String(job).trim().toUpperCase().replaceAll("-", "_").replace(/^JOB_/, "");
  return JOB_NAMES.find((name) => name === word || String(JOBS[name]) === word);
}

/** What each job takes and gives. */
export interface JobTypes {
  SANDBOX_CREATE: { request: SandboxCreateRequest; result: SandboxCreateResult };
  SANDBOX_STOP: { request: SandboxIdRequest; result: { sandboxId: string; stopped: true } };
  SANDBOX_RESUME: { request: SandboxIdRequest; result: { sandboxId: string; resumed: true } };
  SANDBOX_DELETE: { request: SandboxIdRequest; result: { sandboxId: string; deleted: true } };
  SANDBOX_SNAPSHOT: { request: SandboxSnapshotRequest; result: SnapshotResult };
  EXEC: { request: ExecJobRequest; result: ExecJobResult };
  PROMPT: { request: PromptRequest; result: PromptResult };
  TASK: { request: TaskRequest; result: TaskResult };
  BATCH_CREATE: { request: BatchCreateRequest; result: BatchCreateResult };
  BATCH_TASK: { request: BatchTaskRequest; result: BatchTaskResult };
  BATCH_EXEC: { request: BatchExecRequest; result: BatchExecResult };
  BATCH_COLLECT: { request: BatchCollectRequest; result: BatchCollectResult };
  WORKFLOW_CREATE: { request: WorkflowCreateRequest; result: WorkflowCreated };
  WORKFLOW_TRIGGER: { request: WorkflowControlRequest; result: WorkflowExecution };
  WORKFLOW_CANCEL: { request: WorkflowControlRequest; result: WorkflowCanceled };
  WORKFLOW_TICK: { request: Record<never, never>; result: WorkflowTickResult };
  SSH_PROVISION: { request: SshKeyRequest; result: SshProvisionResult };
  SSH_REVOKE: { request: SshKeyRequest; result: SshRevokeResult };
}

type NameOf<Job extends JobName | JobId> = Job extends JobName
  ? Job
  : { [Name in JobName]: (typeof JOBS)[Name] extends Job ? Name : never }[JobName];
export type JobRequest<Job extends JobName | JobId> = JobTypes[NameOf<Job>]["request"];
export type JobResult<Job extends JobName | JobId> = JobTypes[NameOf<Job>]["result"];

export interface JobInfo {
  id: JobId;
  name: JobName;
  summary: string;
  /** JSON Schema of its request. */
  request: object;
}
