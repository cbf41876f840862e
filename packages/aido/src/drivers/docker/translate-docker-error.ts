import { AidoError, type ErrorCode, isAidoError } from "@aido/sdk/protocol";

/** What was being done when the engine failed; names what people know. */
export interface EngineAction {
  /** Completes "… failed": "starting the sandbox". */
  readonly doing: string;
  /** The code for a failure that has no better one. */
  readonly code?: ErrorCode;
  readonly sandboxId?: string;
  readonly image?: string;
  readonly name?: string;
  readonly isolation?: string;
}

export interface EngineFailure extends EngineAction {
  readonly address: string;
  /** Set when the failure is that no answer came within this time. */
  readonly timeoutMs?: number;
}

interface RawError {
  message?: string;
  code?: string;
  statusCode?: number;
  json?: { message?: string } | null;
}

/** The one place where the engine's failures become aido's. */
export function translateDockerError(thrown: unknown, failure: EngineFailure): AidoError {
  if (isAidoError(thrown)) return thrown;
  const raw: RawError = typeof thrown === "object" && thrown !== null ? thrown : { message: String(thrown) };
  const told = clean(raw.json?.message ?? raw.message ?? "no reason was given");
  return (
    connectionError(raw, thrown, failure) ??
    resourceError(raw, told, thrown, failure) ??
    new AidoError(failure.code ?? "INTERNAL_SERVER_ERROR", `${capital(failure.doing)} failed: ${told}`, {
      hint: architectureHint(told),
      details: details(failure),
      cause: thrown,
    })
  );
}

function connectionError(raw: RawError, cause: unknown, failure: EngineFailure): AidoError | undefined {
  const unavailable = (message: string, hint: string) =>
    new AidoError("RUNTIME_UNAVAILABLE", message, { hint, details: { address: failure.address }, cause });
  if (failure.timeoutMs !== undefined) {
    return unavailable(
      `Docker at ${failure.address} did not answer within ${failure.timeoutMs / 1000} s while ${failure.doing}`,
      "Look at what the engine is doing with `docker info` and `journalctl -u docker`.",
    );
  }
  switch (raw.code) {
    case "ENOENT":
    case "ECONNREFUSED":
      return unavailable(
        `Docker is not running: nothing answers at ${failure.address}`,
        "Start it with `sudo systemctl start docker` (or Docker Desktop), or name another engine in DOCKER_HOST. `aido doctor` shows what else this machine can use.",
      );
    case "EACCES":
    case "EPERM":
      return unavailable(
        `This user may not use Docker at ${failure.address}`,
        "Join the docker group with `sudo usermod -aG docker $USER` and log in again, or run a rootless engine.",
      );
    case "ECONNRESET":
    case "EPIPE":
    case "ETIMEDOUT":
    case "EHOSTUNREACH":
    case "ENETUNREACH":
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return unavailable(
        `The connection to Docker at ${failure.address} failed while ${failure.doing} (${raw.code})`,
        "Check that the engine is up with `docker info`, and the address in DOCKER_HOST.",
      );
    default:
      return undefined;
  }
}

function resourceError(
  raw: RawError,
  told: string,
  cause: unknown,
  failure: EngineFailure,
): AidoError | undefined {
  const error = (code: ErrorCode, message: string, hint: string) =>
    new AidoError(code, message, { hint, details: details(failure), cause });
  if (/no space left on device|disk quota exceeded/i.test(told)) {
    return error("DISK_FULL", `The engine's disk is full: ${told}`, "Free space with `docker system prune`.");
  }
  if (/no such image/i.test(told)) return imageNotFound(failure.image ?? "the image", failure, cause);
  if (/invalid reference format|invalid repository name/i.test(told)) {
    return error(
      "VALIDATION_ERROR",
      `${failure.image ?? "The image"} is not an image name`,
      "Write it as name:tag, for example python:3.12-slim.",
    );
  }
  if (/unknown (or invalid )?runtime|runtime .* not found|no such runtime/i.test(told)) {
    return error(
      "ISOLATION_UNAVAILABLE",
      `The engine does not have the runtime for isolation ${failure.isolation ?? "of this sandbox"}: ${told}`,
      "`aido doctor` lists what this machine can do.",
    );
  }
  if (raw.statusCode === 409 && /already in use/i.test(told) && failure.name !== undefined) {
    return error(
      "CONTAINER_NAME_TAKEN",
      `Another container is named ${failure.name}`,
      "Choose another name, or remove that container.",
    );
  }
  if (raw.statusCode === 404 && /no such container|no such exec/i.test(told)) {
    return error(
      "CONTAINER_NOT_FOUND",
      `Sandbox ${failure.sandboxId ?? ""} has no container`,
      "`aido ls --all` lists every sandbox.",
    );
  }
  if (raw.statusCode === 409 && /is not running|is paused/i.test(told)) {
    return error(
      "CONTAINER_NOT_RUNNING",
      `Sandbox ${failure.sandboxId ?? ""} is not running`,
      "Start it first.",
    );
  }
  return undefined;
}

export function imageNotFound(image: string, failure: EngineAction, cause?: unknown): AidoError {
  return new AidoError("IMAGE_NOT_FOUND", `Image ${image} does not exist, here or in its registry`, {
    hint: "Check the name and tag. A private image needs `docker login` to its registry first.",
    details: { ...details(failure), image },
    cause,
  });
}

function details(failure: EngineAction): Record<string, unknown> {
  const { sandboxId, image, name } = failure;
  return Object.fromEntries(
    Object.entries({ sandboxId, image, name }).filter(([, value]) => value !== undefined),
  );
}

function architectureHint(told: string): string | undefined {
  return /exec format error|no matching manifest/i.test(told)
    ? "The image is for another processor. Choose one for this machine's."
    : undefined;
}

/** Engine text reaches terminals: one line, no control characters. */
export function clean(text: string): string {
  return text
    .replace(/[\p{Cc}\s]+/gu, " ")
    .trim()
    .slice(0, 2000);
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
