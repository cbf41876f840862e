import type { ScanType } from "../../src/core/history/scan-records.ts";
import type { WorkspaceReader } from "../../src/core/history/workspace-scanner.ts";

interface Entry {
  type: ScanType;
  mode: number;
  inode: bigint;
  ctimeNs: bigint;
  content: string;
}

/** A workspace in memory that answers `scan` and `cat` as the supervisor does. Its clock moves only by hand. */
export interface ScriptedWorkspace extends WorkspaceReader {
  nowNs: bigint;
  /** What was asked, newest last. */
  readonly asked: string[];
  /** Called between the scan and the answer to `cat`. */
  beforeCat: () => void;
  /** Whether a watch can be had. */
  watchable: boolean;
  /** The next answer of the watch is to look at everything. */
  loseEvents: boolean;
  /** Changes make no event. */
  isSilent: boolean;
  /** The next answer of the watch makes no sense. */
  nonsense: boolean;
  killWatch(): void;
  tellGone(path: string): void;
  hardLink(from: string, to: string): void;
  write(path: string, content: string, mode?: number): void;
  link(path: string, target: string): void;
  pipe(path: string): void;
  mkdir(path: string): void;
  remove(path: string): void;
  move(from: string, to: string): void;
}

const NUMBERS: Readonly<Record<ScanType, number>> = { file: 1, directory: 2, symlink: 3, other: 4 };

export function scriptedWorkspace(): ScriptedWorkspace {
  let inodes = 100n;
  const entries = new Map<string, Entry>();
  const parentOf = (path: string) => (path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "");
  /** Since the last question; true for what was gone meanwhile. */
  let dirty = new Map<string, boolean>();
  let kill: () => void = () => undefined;
  const tell = (path: string, gone = false) => {
    if (!self.isSilent) dirty.set(path, gone || dirty.get(path) === true);
  };
  const touch = (path: string) => {
    const entry = entries.get(path);
    if (entry !== undefined) entry.ctimeNs = self.nowNs;
  };
  const put = (path: string, type: ScanType, content: string, mode: number) => {
    const parent = parentOf(path);
    if (path !== "" && !entries.has(parent)) put(parent, "directory", "", 0o755);
    const old = entries.get(path);
    const inode = old?.type === type ? old.inode : inodes++;
    if (old === undefined || old.type !== type) touch(parent);
    entries.set(path, { type, mode, content, inode, ctimeNs: self.nowNs });
    for (const entry of entries.values()) {
      if (entry.inode === inode) Object.assign(entry, { content, ctimeNs: self.nowNs });
    }
    tell(path);
  };
  const beneath = (path: string) => [...entries.keys()].filter((key) => key.startsWith(`${path}/`));
  const self: ScriptedWorkspace = {
    nowNs: 1_000_000_000_000n,
    asked: [],
    beforeCat: () => undefined,
    watchable: false,
    loseEvents: false,
    isSilent: false,
    nonsense: false,
    killWatch: () => kill(),
    tellGone: (path) => tell(path, true),
    hardLink: (from, to) => {
      const entry = entries.get(from);
      put(to, "file", entry?.content ?? "", entry?.mode ?? 0o644);
      if (entry !== undefined) entries.set(to, { ...entry });
    },
    write: (path, content, mode = 0o644) => put(path, "file", content, mode),
    link: (path, target) => put(path, "symlink", target, 0o777),
    pipe: (path) => put(path, "other", "", 0o644),
    mkdir: (path) => put(path, "directory", "", 0o755),
    remove: (path) => {
      for (const key of [path, ...beneath(path)]) entries.delete(key);
      touch(parentOf(path));
      tell(path, true);
    },
    move: (from, to) => {
      for (const key of [from, ...beneath(from)]) {
        const entry = entries.get(key);
        entries.delete(key);
        if (entry !== undefined) entries.set(to + key.slice(from.length), entry);
      }
      for (const path of [to, parentOf(from), parentOf(to)]) touch(path);
      tell(from, true);
      for (const path of [to, ...beneath(to)]) tell(path);
    },
    async *tool([name = "", argument], options = {}) {
      self.asked.push([name, ...(argument === undefined ? [] : [argument])].join(" "));
      if (name === "scan") {
        const since = BigInt(argument ?? 0);
        const told = [...entries]
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .filter(([path, entry]) => {
            const parent = path === "" ? entry : entries.get(parentOf(path));
            return path === "" || entry.ctimeNs >= since || (parent?.ctimeNs ?? 0n) >= since;
          });
        for (const [path, entry] of told) yield recordOf(path, entry);
        return;
      }
      if (name === "watch" && self.watchable) {
        yield* watch(options.stdin as AsyncIterable<Uint8Array>);
        return;
      }
      if (name !== "cat") throw new Error(`no tool ${name}`);
      self.beforeCat();
      const paths = Buffer.from((options.stdin as Uint8Array | undefined) ?? [])
        .toString("latin1")
        .split("\0")
        .slice(0, -1);
      self.asked.push(...paths.map((path) => `cat ${path}`));
      for (const path of paths) yield contentOf(entries.get(path));
    },
  };
  async function* watch(questions: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    dirty = new Map();
    const killed = new Promise<"killed">((resolve) => {
      kill = () => resolve("killed");
    });
    yield Buffer.from([0]);
    const asking = questions[Symbol.asyncIterator]();
    for (;;) {
      const next = await Promise.race([asking.next(), killed]);
      if (next === "killed" || next.done === true) return;
      self.asked.push("?");
      yield answer();
    }
  }
  const answer = (): Buffer => {
    if (self.nonsense) {
      self.nonsense = false;
      return Buffer.from("nonsense");
    }
    const parts = [...dirty].flatMap(([path, gone]) => {
      const entry = entries.get(path);
      const goneParts = gone || entry === undefined ? [Buffer.from([3]), text(path)] : [];
      return entry === undefined ? goneParts : [...goneParts, Buffer.from([1]), recordOf(path, entry)];
    });
    dirty = new Map();
    if (self.loseEvents) parts.splice(0, parts.length, Buffer.from([4]));
    self.loseEvents = false;
    return Buffer.concat([...parts, Buffer.from([0])]);
  };
  put("", "directory", "", 0o755);
  return self;
}

export function recordOf(path: string, entry: Omit<Entry, "content"> & { content?: string }): Buffer {
  const target = entry.type === "symlink" ? (entry.content ?? "") : "";
  const size = entry.type === "file" || entry.type === "symlink" ? (entry.content ?? "").length : 0;
  const fixed = Buffer.alloc(45);
  fixed.writeUInt8(NUMBERS[entry.type], 0);
  fixed.writeUInt32LE(entry.mode, 1);
  fixed.writeBigUInt64LE(BigInt(size), 13);
  fixed.writeBigUInt64LE(entry.ctimeNs, 21);
  fixed.writeBigUInt64LE(entry.ctimeNs, 29);
  fixed.writeBigUInt64LE(entry.inode, 37);
  return Buffer.concat([fixed, text(path), text(target)]);
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, "latin1");
  const length = Buffer.alloc(4);
  length.writeUInt32LE(bytes.length);
  return Buffer.concat([length, bytes]);
}

function contentOf(entry: Entry | undefined): Buffer {
  const content = entry?.type === "file" ? Buffer.from(entry.content, "latin1") : Buffer.alloc(0);
  const header = Buffer.alloc(9);
  header.writeUInt8(entry === undefined ? 1 : entry.type === "file" ? 0 : 2, 0);
  header.writeBigUInt64LE(BigInt(content.length), 1);
  return Buffer.concat([header, content]);
}
