export type DockerErrorCode = "CONTAINER_START_FAILED" | "EXEC_FAILED" | "COMMAND_TIMEOUT";

/** What the agent layer raises. Only a failed start ends a session; the others are told to the model. */
export class DockerError extends Error {
  readonly code: DockerErrorCode;

  constructor(message: string, code: DockerErrorCode, options: { cause?: unknown } = {}) {
    super(message, options);
    this.name = "DockerError";
    this.code = code;
  }

  get recoverable(): boolean {
    return this.code !== "CONTAINER_START_FAILED";
  }
}
