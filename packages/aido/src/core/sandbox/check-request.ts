import { posix } from "node:path";
import {
  AidoError,
  AWS_ROLE_ARN,
  AWS_ROLES,
  AWS_SERVICES,
  type AwsPermissions,
  type CreateSandbox,
  type ErrorCode,
  ISOLATIONS,
  NETWORKS,
  PROFILES,
} from "@aido/sdk/protocol";
import { parseAddress } from "../object-store/object-address.ts";

const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/;
const USER = /^(\d{1,10}(:\d{1,10})?|[a-z_][a-z0-9_-]{0,31})$/;
const LABEL = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$/;
const MAX_ID_NUMBER = 4_294_967_294;
const MAX_ENV_BYTES = 256 * 1024;
const MIN_MEMORY_BYTES = 6 * 1024 * 1024;
const MIN_IDLE_MS = 1000;
const MAX_TTL_MS = 10 * 366 * 24 * 3600 * 1000;
/** The kernel's and aido's own; a workspace there would not be one. */
const RESERVED = ["/proc", "/sys", "/dev", "/run/aido", "/inputs", "/outputs", "/task"];

/** Refuses what no sandbox can be made of. The driver has its own word about what the machine can give. */
export function checkRequest(request: CreateSandbox): void {
  if (request.id !== undefined) checkName("id", request.id);
  if (request.name !== undefined) checkName("name", request.name);
  if (request.workspace !== undefined) checkName("workspace", request.workspace);
  oneOf("profile", request.profile, PROFILES);
  oneOf("isolation", request.isolation, ISOLATIONS);
  oneOf("network", request.network, NETWORKS);
  if (request.workdir !== undefined) checkWorkdir(request.workdir);
  if (request.user !== undefined) checkUser(request.user);
  checkEnv(request.env ?? {});
  checkLabels(request.labels ?? {});
  checkLimits(request.limits ?? {});
  if (request.ttlMs !== undefined) checkTtl(request.ttlMs);
  if (request.idleTimeoutMs !== undefined) checkIdleTimeout(request.idleTimeoutMs);
  if (request.token !== undefined) checkToken(request.token);
  if (request.permissions?.aws !== undefined) checkAws(request.permissions.aws);
  // Whether it may be used is asked whenever it is.
  if (request.snapshotDestination !== undefined) parseAddress(request.snapshotDestination);
}

export function checkTtl(ttlMs: number): void {
  if (!isWhole(ttlMs, 0, MAX_TTL_MS)) {
    throw invalid("ttlMs", "The ttl must be a whole number of milliseconds; 0 means no end");
  }
}

function checkAws({ role, services }: AwsPermissions): void {
  if (!AWS_ROLE_ARN.test(role)) oneOf("permissions.aws.role", role, AWS_ROLES);
  for (const service of services) oneOf("permissions.aws.services", service, AWS_SERVICES);
  if (services.length > 0) return;
  throw invalid("permissions.aws.services", "AWS permissions need at least one service, for example s3");
}

function checkIdleTimeout(idleTimeoutMs: number): void {
  if (idleTimeoutMs === 0 || isWhole(idleTimeoutMs, MIN_IDLE_MS, MAX_TTL_MS)) return;
  const text = "The idle timeout must be a whole number of milliseconds, at least a second; 0 means never";
  throw invalid("idleTimeoutMs", text);
}

/** Never shown, not even when it is refused. */
export function checkToken(token: string): void {
  if (/^[\x21-\x7e]{16,256}$/.test(token)) return;
  throw invalid("token", "The token must be 16 to 256 visible characters of ASCII, without spaces");
}

function checkName(field: "id" | "name" | "workspace", value: string): void {
  if (NAME.test(value)) return;
  throw invalid(
    field,
    `The ${field} ${quote(value)} cannot be used: it must begin with a letter or digit, then letters, digits, ` +
      "`_`, `.` or `-`, at most 63 in all",
  );
}

function oneOf(field: string, value: string | undefined, allowed: readonly string[]): void {
  if (value === undefined || allowed.includes(value)) return;
  throw invalid(field, `There is no ${field} ${quote(value)}; choose one of ${allowed.join(", ")}`);
}

function checkWorkdir(workdir: string): void {
  const isPlain =
    workdir.startsWith("/") &&
    workdir.length <= 1024 &&
    !hasControl(workdir) &&
    posix.normalize(workdir).replace(/(.)\/$/, "$1") === workdir;
  if (!isPlain || workdir === "/") {
    throw invalid(
      "workdir",
      `The workdir ${quote(workdir)} must be an absolute path without \`..\`, not / itself`,
    );
  }
  if (RESERVED.some((path) => workdir === path || workdir.startsWith(`${path}/`))) {
    throw invalid(
      "workdir",
      `The workdir ${quote(workdir)} lies in a directory that aido or the kernel keeps`,
    );
  }
}

function checkUser(user: string): void {
  const numbers = user.split(":").map(Number);
  if (USER.test(user) && !numbers.some((number) => number > MAX_ID_NUMBER)) return;
  throw invalid("user", `The user ${quote(user)} must be a uid, \`uid:gid\` or a user's name`);
}

function checkEnv(env: Readonly<Record<string, string>>): void {
  let bytes = 0;
  for (const [name, value] of Object.entries(env)) {
    if (name === "" || /[=\0]/.test(name)) {
      throw invalid("env", `${quote(name)} is not a name for an environment variable`);
    }
    if (typeof value !== "string" || value.includes("\0")) {
      throw invalid("env", `The value of ${quote(name)} must be text without NUL`);
    }
    bytes += Buffer.byteLength(name) + Buffer.byteLength(value) + 2;
  }
  if (bytes > MAX_ENV_BYTES) {
    throw invalid("env", `The environment is larger than ${MAX_ENV_BYTES} bytes; write a file instead`);
  }
}

function checkLabels(labels: Readonly<Record<string, string>>): void {
  for (const [key, value] of Object.entries(labels)) {
    if (!LABEL.test(key)) throw invalid("labels", `${quote(key)} is not a name for a label`);
    if (typeof value !== "string" || value.length > 4096 || hasControl(value)) {
      throw invalid("labels", `The label ${key} must be one line of at most 4096 characters`);
    }
  }
}

function checkLimits(limits: NonNullable<CreateSandbox["limits"]>): void {
  const { cpus, memoryBytes } = limits;
  if (cpus !== undefined && !(cpus >= 0.01 && cpus <= 1024)) {
    throw invalid(
      "limits.cpus",
      `${cpus} processors cannot be given: choose 0.01 to 1024`,
      "INVALID_CPU_LIMIT",
    );
  }
  if (memoryBytes !== undefined && !isWhole(memoryBytes, MIN_MEMORY_BYTES)) {
    const text = `${memoryBytes} bytes of memory cannot be given: 6 MiB is the least`;
    throw invalid("limits.memoryBytes", text, "INVALID_MEMORY_LIMIT");
  }
  const least = { pids: 8, diskBytes: 0, openFiles: 32, outputBytes: 0, swapBytes: 0 };
  for (const [key, minimum] of Object.entries(least)) {
    const value = limits[key as keyof typeof least];
    if (value === undefined || isWhole(value, minimum)) continue;
    throw invalid(`limits.${key}`, `The limit ${key} must be a whole number of at least ${minimum}`);
  }
}

function isWhole(value: number, minimum: number, maximum = Number.MAX_SAFE_INTEGER): boolean {
  return Number.isSafeInteger(value) && value >= minimum && value <= maximum;
}

function hasControl(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return /[\u0000-\u001f\u007f]/.test(text);
}

function quote(text: string): string {
  return JSON.stringify(text.slice(0, 80));
}

function invalid(field: string, message: string, code: ErrorCode = "VALIDATION_ERROR"): AidoError {
  return new AidoError(code, message, { details: { field } });
}
