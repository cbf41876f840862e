import { posix } from "node:path";
import { AidoError, type ExecRequest } from "@aido/sdk/protocol";
import { credentialEnvironment } from "../aws/credential-offer.ts";
import type { SandboxRecord } from "../store/store.ts";
import type { ExecSpec } from "../supervisor/supervisor.ts";

const MAX_STRING_BYTES = 131_072;
/** The kernel's usual 2 MiB for arguments and environment, and one frame of the protocol, whichever is less. */
const MAX_TOTAL_BYTES = 1_000_000;
const MAX_PATH_BYTES = 4_096;
const DEFAULT_GRACE_MS = 2_000;
const MAX_MS = 2 ** 31;
const ID = /^[A-Za-z0-9_.-]{1,64}$/;
/** What the command changes could not be told from the workspace's beginning. */
const INITIAL_ENTRY = "unknown";
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Checks a request and fills in what the sandbox sets. Raises VALIDATION_ERROR, INVALID_PATH or ARGUMENTS_TOO_LONG. */
export function toExecSpec(
  record: SandboxRecord,
  request: ExecRequest,
  id: string,
  user: { uid: number; gid: number } | undefined,
): ExecSpec {
  if (!ID.test(id) || id === "." || id === "..") {
    throw invalid(`The exec id ${JSON.stringify(id)} is not 1 to 64 letters, digits, "_", "." or "-"`);
  }
  if (id === INITIAL_ENTRY) {
    throw invalid(`The exec id ${id} is taken: the history's first entry has it`, "Choose another id.");
  }
  checkArgv(request.argv);
  const env = toEnv(record, request);
  const total = [...request.argv, ...env].reduce((sum, text) => sum + Buffer.byteLength(text) + 9, 0);
  if (total > MAX_TOTAL_BYTES) {
    throw tooLong(
      `The arguments and environment have ${total} bytes together, over the limit of ${MAX_TOTAL_BYTES}`,
    );
  }
  return {
    id,
    argv: request.argv,
    env,
    cwd: toCwd(record.workdir, request.cwd),
    user,
    stdin: request.stdin ?? false,
    pty: toSize(request.pty),
    timeoutMs: toMs(request.timeoutMs ?? 0, "timeoutMs"),
    graceMs: toMs(request.killGraceMs ?? DEFAULT_GRACE_MS, "killGraceMs"),
    outputLimit: record.limits.outputBytes,
    isTool: false,
  };
}

function checkArgv(argv: readonly string[]): void {
  if (argv.length === 0 || argv[0] === "") {
    throw invalid("There is no command to run", "Give it after `--`, for example `-- ls -l`.");
  }
  for (const word of argv) {
    if (word.includes("\0")) throw invalid("An argument has a NUL byte, which no command can be given");
    if (Buffer.byteLength(word) >= MAX_STRING_BYTES) {
      throw tooLong(`An argument has ${Buffer.byteLength(word)} bytes, over the kernel's limit of 128 KiB`);
    }
  }
}

function toEnv(record: SandboxRecord, request: ExecRequest): string[] {
  const values: Record<string, string> = {
    PATH,
    HOME: record.workdir,
    LANG: "C.UTF-8",
    ...(request.pty === undefined ? {} : { TERM: "xterm-256color" }),
    // An image may set names that nobody could ask for; they are not the caller's mistake.
    ...Object.fromEntries(Object.entries(record.imageEnv).filter(([name]) => ENV_NAME.test(name))),
    ...credentialEnvironment(record),
    ...record.env,
    ...request.env,
  };
  return Object.entries(values).map(([name, value]) => {
    if (!ENV_NAME.test(name)) {
      throw invalid(
        `${JSON.stringify(name)} is not a variable's name: letters, digits and "_", not first a digit`,
      );
    }
    if (value.includes("\0")) throw invalid(`The variable ${name} has a NUL byte`);
    if (name.length + Buffer.byteLength(value) + 1 >= MAX_STRING_BYTES) {
      throw tooLong(`The variable ${name} is over the kernel's limit of 128 KiB`);
    }
    return `${name}=${value}`;
  });
}

function toCwd(workdir: string, cwd: string | undefined): string {
  if (cwd === undefined || cwd === "" || cwd === ".") return "";
  if (cwd.includes("\0") || Buffer.byteLength(cwd) > MAX_PATH_BYTES) {
    throw new AidoError("INVALID_PATH", "The working directory has a NUL byte or over 4096 bytes");
  }
  return posix.resolve(workdir, cwd);
}

function toSize(size: ExecRequest["pty"]): ExecSpec["pty"] {
  if (size === undefined) return undefined;
  for (const value of [size.rows, size.cols]) {
    if (!Number.isInteger(value) || value < 1 || value > 65_535) {
      throw invalid("A terminal has 1 to 65535 rows and columns");
    }
  }
  return size;
}

function toMs(value: number, name: string): number {
  if (!Number.isFinite(value) || value < 0 || value > MAX_MS) {
    throw invalid(`${name} must be between 0 and ${MAX_MS} milliseconds`);
  }
  return Math.round(value);
}

function invalid(message: string, hint?: string): AidoError {
  return new AidoError("VALIDATION_ERROR", message, { hint });
}

function tooLong(message: string): AidoError {
  return new AidoError("ARGUMENTS_TOO_LONG", message, {
    hint: "Write it to a file of the sandbox or pass it by standard input.",
  });
}
