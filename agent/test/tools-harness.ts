import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, copyFile, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

export const AGENT = resolve(
  process.env["AIDO_TEST_AGENT"] ?? join(import.meta.dirname, "../build/aido-agent"),
);
export const OLD_KERNEL = { AIDO_AGENT_OLD_KERNEL: "1" };
const DEADLINE_MS = 60_000;

export interface ToolOptions {
  readonly stdin?: Buffer | string;
  readonly env?: Readonly<Record<string, string>>;
  readonly uid?: number;
  readonly agent?: string;
}

export interface ToolEnd {
  readonly status: number | null;
  readonly stdout: Buffer;
  readonly stderr: string;
}

export function startTool(
  args: readonly string[],
  options: ToolOptions = {},
): ChildProcessWithoutNullStreams {
  const user = options.uid === undefined ? {} : { uid: options.uid, gid: options.uid };
  const child = spawn(options.agent ?? AGENT, ["tool", ...args], {
    // A tool leaves its memory to the kernel, which a sanitized build would take for leaks.
    env: { ASAN_OPTIONS: "detect_leaks=0", ...options.env },
    timeout: DEADLINE_MS,
    killSignal: "SIGKILL",
    ...user,
  });
  // A tool that refuses its input closes it before all is written.
  child.stdin.on("error", () => undefined);
  return child;
}

export async function runTool(args: readonly string[], options: ToolOptions = {}): Promise<ToolEnd> {
  const child = startTool(args, options);
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => out.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => err.push(chunk));
  child.stdin.end(options.stdin ?? "");
  const [status] = (await once(child, "close")) as [number | null];
  return { status, stdout: Buffer.concat(out), stderr: Buffer.concat(err).toString() };
}

/** The next output; a tool that ends without any is a failure, not a wait. */
export async function nextOutput(child: ChildProcessWithoutNullStreams): Promise<Buffer> {
  const stop = new AbortController();
  const { signal } = stop;
  const ended = once(child, "close", { signal }).then(() =>
    Promise.reject(new Error("the tool ended without output")),
  );
  try {
    const [chunk] = (await Promise.race([once(child.stdout, "data", { signal }), ended])) as [Buffer];
    return chunk;
  } finally {
    ended.catch(() => undefined);
    stop.abort();
  }
}

/** A fresh directory that is gone at the end, however deep or unreadable what it holds. */
export async function freshDirectory(): Promise<{ path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), "aido-tools-"));
  await chmod(path, 0o755);
  return {
    path,
    [Symbol.asyncDispose]: async () => {
      execFileSync("rm", ["-rf", "--", path]);
    },
  };
}

/** Runs tools as a user whom file modes bind; root is bound by none. */
export async function plainUser(directory: string): Promise<ToolOptions> {
  if (process.getuid?.() !== 0) return {};
  const agent = join(directory, "aido-agent");
  await copyFile(AGENT, agent);
  await chmod(agent, 0o755);
  return { agent, uid: 65_534 };
}

export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + DEADLINE_MS;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error("the condition did not come true in time");
    await delay(2);
  }
}

const TYPES = ["", "file", "directory", "symlink", "other"];

export interface ToolRecord {
  readonly type: string;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly size: bigint;
  readonly mtimeNs: bigint;
  readonly ctimeNs: bigint;
  readonly inode: bigint;
  readonly path: string;
  readonly target: string;
}

/** Paths come back as latin1, which keeps every byte. */
export function decodeRecords(bytes: Buffer): ToolRecord[] {
  const records: ToolRecord[] = [];
  for (let at = 0; at < bytes.length; ) {
    const start = at;
    const text = (): string => {
      const size = bytes.readUInt32LE(at);
      at += 4 + size;
      return bytes.toString("latin1", at - size, at);
    };
    at += 45;
    const path = text();
    const target = text();
    records.push({
      type: TYPES[bytes.readUInt8(start)] ?? "?",
      mode: bytes.readUInt32LE(start + 1),
      uid: bytes.readUInt32LE(start + 5),
      gid: bytes.readUInt32LE(start + 9),
      size: bytes.readBigUInt64LE(start + 13),
      mtimeNs: bytes.readBigUInt64LE(start + 21),
      ctimeNs: bytes.readBigUInt64LE(start + 29),
      inode: bytes.readBigUInt64LE(start + 37),
      path,
      target,
    });
  }
  return records;
}

export async function paths(args: readonly string[], options: ToolOptions = {}): Promise<string[]> {
  const end = await runTool(args, options);
  if (end.status !== 0) throw new Error(end.stderr);
  return decodeRecords(end.stdout).map((record) => record.path);
}
