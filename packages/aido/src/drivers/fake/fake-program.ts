import type { FakeTree } from "./fake-tree.ts";

/** What a fake program sees of its process. */
export interface FakeProcess {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly uid: number;
  readonly gid: number;
  readonly pty: boolean;
  /** Ends when the host closes standard input; empty when none was asked for. */
  readonly stdin: AsyncIterable<Buffer>;
  /** Aborted when the process is killed; what the program does afterwards is not seen by anyone. */
  readonly signal: AbortSignal;
  /** The sandbox's files, mounts included. */
  readonly files: FakeTree;
  /** Waits while the ring is full, as a real pipe does. */
  stdout(data: string | Uint8Array): Promise<void>;
  stderr(data: string | Uint8Array): Promise<void>;
  /** By the driver's clock; rejects when the process is killed. */
  sleep(ms: number): Promise<void>;
  /** From now on signals other than KILL only call this. */
  trap(handler: (signal: number) => void): void;
}

/** The returned number is the exit code; nothing means 0; an exception is 1 with its message on standard error. */
export type FakeProgram = (
  process: FakeProcess,
) => number | undefined | Promise<number | undefined> | Promise<void>;

const FLOOD_LINE_BYTES = 16;

/** `count` bytes of numbered lines, so that a lost or doubled byte shows. */
export function floodBytes(from: number, count: number): Buffer {
  const first = Math.floor(from / FLOOD_LINE_BYTES);
  const last = Math.ceil((from + count) / FLOOD_LINE_BYTES);
  let text = "";
  for (let line = first; line < last; line += 1)
    text += `${String(line).padStart(FLOOD_LINE_BYTES - 1, "0")}\n`;
  const skip = from - first * FLOOD_LINE_BYTES;
  return Buffer.from(text, "latin1").subarray(skip, skip + count);
}

async function flood(write: (data: Buffer) => Promise<void>, total: number): Promise<undefined> {
  for (let at = 0; at < total; at += 65_536) await write(floodBytes(at, Math.min(65_536, total - at)));
  return undefined;
}

/** Programs every fake sandbox has. */
export const FAKE_PROGRAMS: Readonly<Record<string, FakeProgram>> = {
  true: () => 0,
  false: () => 1,
  exit: ({ argv }) => Number(argv[1] ?? 0),
  echo: async (process) => {
    const words = process.argv.slice(1);
    const bare = words[0] === "-n";
    await process.stdout((bare ? words.slice(1) : words).join(" ") + (bare ? "" : "\n"));
    return 0;
  },
  warn: async (process) => {
    await process.stderr(`${process.argv.slice(1).join(" ")}\n`);
    return 0;
  },
  pwd: async (process) => {
    await process.stdout(`${process.cwd}\n`);
    return 0;
  },
  env: async (process) => {
    for (const [name, value] of Object.entries(process.env)) await process.stdout(`${name}=${value}\n`);
    return 0;
  },
  id: async (process) => {
    await process.stdout(`${process.uid}:${process.gid}\n`);
    return 0;
  },
  cat: async (process) => {
    const paths = process.argv.slice(1);
    for (const path of paths) await process.stdout(await process.files.readFile(process.cwd, path));
    if (paths.length === 0) for await (const chunk of process.stdin) await process.stdout(chunk);
    return 0;
  },
  tee: async (process) => {
    const chunks: Buffer[] = [];
    for await (const chunk of process.stdin) {
      chunks.push(chunk);
      await process.stdout(chunk);
    }
    for (const path of process.argv.slice(1)) {
      await process.files.writeFile(process.cwd, path, Buffer.concat(chunks));
    }
    return 0;
  },
  /** `put PATH TEXT…` */
  put: async (process) => {
    const [, path = "", ...words] = process.argv;
    await process.files.writeFile(process.cwd, path, Buffer.from(`${words.join(" ")}\n`));
    return 0;
  },
  sleep: async (process) => {
    await process.sleep(Number(process.argv[1] ?? 0) * 1000);
    return 0;
  },
  /** `flood BYTES` */
  flood: (process) => flood((data) => process.stdout(data), Number(process.argv[1] ?? 1_048_576)),
  /** `flood-stderr BYTES` */
  "flood-stderr": (process) => flood((data) => process.stderr(data), Number(process.argv[1] ?? 1_048_576)),
  /** Ignores TERM: only KILL ends it. */
  stubborn: async (process) => {
    process.trap(() => undefined);
    await process.stdout("ready\n");
    await process.sleep(86_400_000);
    return 0;
  },
};
