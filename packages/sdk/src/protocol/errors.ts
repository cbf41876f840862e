/** How a caller must react. A kind fixes HTTP status, CLI exit code and whether a retry can help. */
export const ERROR_KINDS = {
  invalid: { status: 400, exit: 2, retry: false },
  unauthenticated: { status: 401, exit: 3, retry: false },
  forbidden: { status: 403, exit: 3, retry: false },
  not_found: { status: 404, exit: 4, retry: false },
  conflict: { status: 409, exit: 5, retry: false },
  limit: { status: 429, exit: 6, retry: true },
  timeout: { status: 504, exit: 7, retry: false },
  unavailable: { status: 503, exit: 8, retry: true },
  unsupported: { status: 501, exit: 9, retry: false },
  internal: { status: 500, exit: 1, retry: false },
} as const;
export type ErrorKind = keyof typeof ERROR_KINDS;

/** Every code aido can raise. Codes are public: add freely, never rename or reuse. */
export const ERROR_CODES = {
  // client
  VALIDATION_ERROR: "invalid",
  INVALID_CONFIG: "invalid",
  INVALID_SPEC: "invalid",
  INVALID_PATH: "invalid",
  INVALID_MEMORY_LIMIT: "invalid",
  INVALID_CPU_LIMIT: "invalid",
  TASK_NOT_FOUND: "invalid",
  TASK_NOT_READABLE: "invalid",
  INPUT_NOT_FOUND: "invalid",
  ARGUMENTS_TOO_LONG: "invalid",
  PAYLOAD_TOO_LARGE: "invalid",
  REQUEST_TIMEOUT: "timeout",
  METHOD_NOT_ALLOWED: "invalid",
  MISSING_AUTH: "unauthenticated",
  INVALID_AUTH_FORMAT: "unauthenticated",
  INVALID_API_KEY: "unauthenticated",
  UNAUTHORIZED: "unauthenticated",
  FORBIDDEN: "forbidden",
  RATE_LIMITED: "limit",
  QUOTA_EXCEEDED: "limit",
  RESOURCE_NOT_FOUND: "not_found",
  // sandboxes and containers
  CONTAINER_NOT_FOUND: "not_found",
  CONTAINER_EXPIRED: "not_found",
  CONTAINER_AMBIGUOUS: "invalid",
  CONTAINER_NAME_TAKEN: "conflict",
  CONTAINER_NOT_RUNNING: "conflict",
  CONTAINER_BUSY: "conflict",
  WORKSPACE_IN_USE: "conflict",
  CONTAINER_CREATION_FAILED: "internal",
  CONTAINER_START_FAILED: "internal",
  CONTAINER_REMOVAL_FAILED: "internal",
  CONTAINER_LOST: "unavailable",
  PORT_UNREACHABLE: "unavailable",
  SSH_NOT_SERVED: "unavailable",
  IMAGE_NOT_FOUND: "not_found",
  IMAGE_PULL_FAILED: "unavailable",
  IMAGE_BUILD_FAILED: "invalid",
  IMAGE_IN_USE: "conflict",
  ISOLATION_UNAVAILABLE: "unsupported",
  UNSUPPORTED: "unsupported",
  // execution
  EXECUTION_NOT_FOUND: "not_found",
  EXECUTION_FAILED: "invalid",
  EXECUTION_CONFLICT: "conflict",
  EXECUTION_TIMEOUT: "timeout",
  COMMAND_TIMEOUT: "timeout",
  EXEC_FAILED: "internal",
  OUT_OF_MEMORY: "limit",
  OUTPUT_LOST: "conflict",
  TERMINAL_NOT_FOUND: "not_found",
  TERMINAL_CLOSED: "conflict",
  // agents
  AGENT_NOT_FOUND: "not_found",
  AGENT_UNAVAILABLE: "unsupported",
  AGENT_SESSION_BUSY: "conflict",
  AGENT_FAILED: "conflict",
  // files and history
  FILE_NOT_FOUND: "not_found",
  FILE_EXISTS: "conflict",
  FILE_NOT_PERMITTED: "forbidden",
  FILE_CREATION_FAILED: "conflict",
  FILE_DOWNLOAD_FAILED: "conflict",
  GIT_INIT_FAILED: "internal",
  GIT_COMMIT_FAILED: "internal",
  GIT_HISTORY_FAILED: "internal",
  GIT_DIFF_FAILED: "internal",
  GIT_ROLLBACK_FAILED: "internal",
  HISTORY_FULL: "conflict",
  EVIDENCE_BROKEN: "conflict",
  // objects and snapshots
  OBJECT_NOT_FOUND: "not_found",
  OBJECT_BROKEN: "conflict",
  OBJECT_STORE_REFUSED: "forbidden",
  OBJECT_STORE_UNAVAILABLE: "unavailable",
  DESTINATION_REFUSED: "forbidden",
  // permissions
  AWS_NOT_CONFIGURED: "unsupported",
  AWS_REFUSED: "forbidden",
  AWS_UNAVAILABLE: "unavailable",
  // swarms
  SWARM_NOT_FOUND: "not_found",
  SWARM_ACTIVE: "conflict",
  SWARM_STATE_BUSY: "unavailable",
  SWARM_STATE_BROKEN: "conflict",
  SWARM_STATE_TOO_NEW: "unsupported",
  TASK_FILE_NOT_FOUND: "not_found",
  TASK_FILE_INVALID: "invalid",
  STORY_STATUS_CONFLICT: "conflict",
  SWARM_MESSAGE_INVALID: "invalid",
  BRANCH_NOT_FOUND: "not_found",
  BRANCH_IN_USE: "conflict",
  MERGE_REFUSED: "conflict",
  GIT_FETCH_FAILED: "unavailable",
  GIT_MERGE_FAILED: "internal",
  // system
  RUNTIME_UNAVAILABLE: "unavailable",
  STORE_UNAVAILABLE: "unavailable",
  STORE_TOO_NEW: "unsupported",
  DATA_DIR_NOT_WRITABLE: "invalid",
  DISK_FULL: "unavailable",
  DEADLINE_EXCEEDED: "timeout",
  CANCELLED: "conflict",
  SHUTTING_DOWN: "unavailable",
  INTERNAL_SERVER_ERROR: "internal",
} as const satisfies Record<string, ErrorKind>;
export type ErrorCode = keyof typeof ERROR_CODES;

const BRAND = Symbol.for("dev.aido.error");

export interface AidoErrorOptions {
  /** The next thing to type or check. */
  hint?: string | undefined;
  /** Ids, limits, paths; never secrets. */
  details?: Readonly<Record<string, unknown>> | undefined;
  cause?: unknown;
}

export interface ErrorBody {
  error: {
    code: string;
    message: string;
    hint?: string | undefined;
    details?: Readonly<Record<string, unknown>> | undefined;
    requestId?: string | undefined;
  };
}

/** The one error users see. Codes survive the wire and duplicate package copies; `instanceof` does not. */
export class AidoError extends Error {
  readonly code: ErrorCode;
  readonly hint: string | undefined;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, options: AidoErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "AidoError";
    this.code = code;
    this.hint = options.hint;
    this.details = options.details ?? {};
    Object.defineProperty(this, BRAND, { value: true });
  }

  get kind(): ErrorKind {
    return ERROR_CODES[this.code];
  }

  get status(): number {
    return ERROR_KINDS[this.kind].status;
  }

  get exitCode(): number {
    return ERROR_KINDS[this.kind].exit;
  }

  /** The body sent over HTTP and printed by `--json`. */
  toBody(requestId?: string): ErrorBody {
    const cause = this.cause instanceof Error ? this.cause.message : undefined;
    const details = cause === undefined ? this.details : { cause, ...this.details };
    return {
      error: {
        code: this.code,
        message: this.message,
        ...(this.hint === undefined ? {} : { hint: this.hint }),
        ...(Object.keys(details).length === 0 ? {} : { details }),
        ...(requestId === undefined ? {} : { requestId }),
      },
    };
  }
}

export function isAidoError(value: unknown, code?: ErrorCode): value is AidoError {
  if (typeof value !== "object" || value === null || !(BRAND in value)) return false;
  return code === undefined || (value as unknown as AidoError).code === code;
}

/** Anything that is not an AidoError is a bug or an abort; the original stays in `cause`. */
export function toAidoError(thrown: unknown): AidoError {
  if (isAidoError(thrown)) return thrown;
  if (thrown instanceof Error && thrown.name === "AbortError") {
    return new AidoError("CANCELLED", "The operation was cancelled", { cause: thrown });
  }
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  const code = thrown instanceof Error && "code" in thrown ? thrown.code : undefined;
  if (code === "ENOSPC" || code === "EDQUOT") {
    return new AidoError("DISK_FULL", `No space left on the disk: ${message}`, {
      hint: "Free some space, for example with `aido sandbox destroy --all`, and try again.",
      cause: thrown,
    });
  }
  return new AidoError("INTERNAL_SERVER_ERROR", message, { cause: thrown });
}
