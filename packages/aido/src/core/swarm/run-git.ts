import { type ChildProcess, spawn } from "node:child_process";
import { AidoError, type ErrorCode } from "@aido/sdk/protocol";

const LIMIT_MS = 120_000;
const KILL_MS = 5_000;
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
const MAX_PROBLEM_BYTES = 64 * 1024;

/** Variables that point git at another repository or another part of it, or make it say more than it is asked for. */
const NOT_INHERITED =
  /^GIT_(DIR|WORK_TREE|INDEX_FILE|INDEX_VERSION|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES|COMMON_DIR|NAMESPACE|PREFIX|GRAFT_FILE|SHALLOW_FILE|REPLACE_REF_BASE|IMPLICIT_WORK_TREE|INTERNAL_SUPER_PREFIX|QUARANTINE_PATH|EXTERNAL_DIFF|ATTR_SOURCE|LITERAL_PATHSPECS|(AUTHOR|COMMITTER)_DATE|TRACE.*)$/;

export interface GitOptions {
  /** Which code a failure has. */
  code: ErrorCode;
  /** Ends that are answers. */
  answers?: readonly number[] | undefined;
  stdin?: string | undefined;
  limitMs?: number | undefined;
  maxBytes?: number | undefined;
  env?: Readonly<Record<string, string>> | undefined;
}

export interface GitAnswer {
  code: number;
  stdout: Buffer;
}

export interface GitSurroundings {
  /** The user's: git finds keys, proxies and identity by it. */
  env: Readonly<Record<string, string | undefined>>;
  signal?: AbortSignal | undefined;
  /** In a group of its own, so that all it starts can be ended with it; without a terminal to ask on. */
  isAlone?: boolean | undefined;
}

export function firstLine(bytes: Buffer): string {
  return bytes.toString("utf8").split("\n", 1)[0] ?? "";
}

/** One git, with a limit on its time and on what it may say. */
export async function runGit(
  args: readonly string[],
  cwd: string,
  options: GitOptions,
  surroundings: GitSurroundings,
): Promise<GitAnswer> {
  const { signal } = surroundings;
  signal?.throwIfAborted();
  const limitMs = options.limitMs ?? LIMIT_MS;
  const maxBytes = options.maxBytes ?? MAX_ANSWER_BYTES;
  const child = spawn("git", args, {
    cwd,
    env: { ...inherited(surroundings.env), ...FIXED, ...options.env },
    stdio: ["pipe", "pipe", "pipe"],
    detached: surroundings.isAlone === true,
  });
  let problem: "time" | "size" | "cancelled" | undefined;
  const stop = (why: typeof problem) => {
    if (problem === undefined) hardly = setTimeout(() => end(child, "SIGKILL", surroundings), KILL_MS);
    problem ??= why;
    end(child, "SIGTERM", surroundings);
  };
  let hardly: NodeJS.Timeout | undefined;
  const timer = setTimeout(() => stop("time"), limitMs);
  const cancel = () => stop("cancelled");
  signal?.addEventListener("abort", cancel, { once: true });
  const stdout = collect(child.stdout, maxBytes, () => stop("size"));
  const stderr = collect(child.stderr, MAX_PROBLEM_BYTES, () => undefined);
  child.stdin.on("error", () => undefined);
  child.stdin.end(options.stdin);
  const shown = args.find((arg, index) => !arg.startsWith("-") && args[index - 1] !== "-c") ?? "";
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once("error", (cause: NodeJS.ErrnoException) =>
        reject(cause.code === "ENOENT" ? noGit(cause) : cause),
      );
      child.once("close", resolve);
    });
    signal?.throwIfAborted();
    if (problem === "time")
      throw new AidoError("DEADLINE_EXCEEDED", `git ${shown} took longer than ${limitMs / 1000} s`);
    if (problem === "size")
      throw new AidoError(options.code, `git ${shown} answers with more than ${maxBytes} bytes`);
    if (code !== 0 && (code === null || !options.answers?.includes(code)))
      throw new AidoError(
        options.code,
        `git ${shown} failed: ${complaint(stderr()) || `it ended with ${code}`}`,
      );
    return { code, stdout: stdout() };
  } finally {
    clearTimeout(timer);
    clearTimeout(hardly);
    signal?.removeEventListener("abort", cancel);
  }
}

/** With isAlone whatever it has started, which may hold its output open. */
function end(child: ChildProcess, signal: "SIGTERM" | "SIGKILL", { isAlone }: GitSurroundings): void {
  if (isAlone !== true || child.pid === undefined) {
    child.kill(signal);
    return;
  }
  try {
    process.kill(-child.pid, signal);
  } catch {
    // It is gone.
  }
}

const FIXED = {
  LC_ALL: "C",
  GIT_TERMINAL_PROMPT: "0",
  GIT_OPTIONAL_LOCKS: "0",
  GIT_NO_REPLACE_OBJECTS: "1",
  GIT_MERGE_AUTOEDIT: "no",
};

function inherited(env: GitSurroundings["env"]): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && !NOT_INHERITED.test(name)) kept[name] = value;
  }
  return kept;
}

function collect(stream: NodeJS.ReadableStream, most: number, onMore: () => void): () => Buffer {
  const parts: Buffer[] = [];
  let length = 0;
  stream.on("data", (chunk: Buffer) => {
    length += chunk.length;
    if (length > most) onMore();
    else parts.push(chunk);
  });
  return () => Buffer.concat(parts);
}

/** What git itself says; lines that a server sent are left out. */
function complaint(bytes: Buffer): string {
  const lines = bytes.toString("utf8").split(/[\r\n]+/);
  const own = lines.filter((line) => /^(fatal|error): /.test(line));
  return own.join("; ").slice(0, 600);
}

function noGit(cause: Error): AidoError {
  return new AidoError("RUNTIME_UNAVAILABLE", "There is no git on this machine", {
    hint: "Install it, for instance with `apt-get install git`.",
    cause,
  });
}
