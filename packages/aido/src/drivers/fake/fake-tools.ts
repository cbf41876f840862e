import { FieldWriter } from "../../core/supervisor/frame-fields.ts";
import type { FakeProcess, FakeProgram } from "./fake-program.ts";
import { readTar, TAR_END, tarMember } from "./fake-tar.ts";
import type { FakeEntry } from "./fake-tree.ts";

type Tool = (process: FakeProcess, root: string, path: string, rest: readonly string[]) => Promise<void>;

/** The supervisor's builtin tools. `root` and `path` are joined so that nothing leads out of the root. */
const TOOLS: Readonly<Record<string, Tool>> = {
  async read({ files, stdout }, root, path, [offset, length]) {
    const content = await files.readFile("/", path === "" ? root : files.inside(root, path));
    const from = Number(offset ?? 0);
    const to = length === undefined ? content.length : from + Number(length);
    for (let at = from; at < Math.min(to, content.length); at += 65_536) {
      await stdout(content.subarray(at, Math.min(at + 65_536, to)));
    }
  },
  async write(process, root, path, [mode = "644", append]) {
    const { files } = process;
    const target = files.inside(root, path);
    const before =
      append === "append" ? await files.readFile("/", target).catch(() => Buffer.alloc(0)) : undefined;
    const content = await everything(process.stdin);
    const whole = before === undefined ? content : Buffer.concat([before, content]);
    const kept =
      mode === "-"
        ? await files.stat("/", target).then(
            (entry) => entry.mode,
            () => 0o644,
          )
        : undefined;
    await files.writeFile("/", target, whole, kept ?? Number.parseInt(mode, 8));
  },
  async stat({ files, stdout }, root, path) {
    await stdout(record(await files.stat("/", files.inside(root, path))));
  },
  async list({ files, stdout }, root, path, [recursive]) {
    for (const entry of await files.list("/", files.inside(root, path), recursive === "1")) {
      await stdout(record(entry));
    }
  },
  async mkdir({ files }, root, path, [mode = "755"]) {
    await files.mkdir("/", files.inside(root, path), Number.parseInt(mode, 8));
  },
  async move({ files }, root, from, [to = ""]) {
    await files.move("/", files.inside(root, from), files.inside(root, to));
  },
  async remove({ files }, root, path) {
    await files.remove("/", files.inside(root, path));
  },
  async tar({ files, stdout }, root, path) {
    const base = files.inside(root, path);
    for (const entry of await files.list("/", base, true)) {
      const content = entry.type === 1 ? await files.readFile(base, entry.path) : Buffer.alloc(0);
      await stdout(tarMember(entry, content));
    }
    await stdout(TAR_END);
  },
  async untar(process, root, path) {
    const { files } = process;
    const base = files.inside(root, path);
    await files.mkdir("/", base);
    for (const member of readTar(await everything(process.stdin))) {
      if (member.type === 2) await files.mkdir(base, member.path, member.mode);
      else if (member.type === 3) await files.symlink(base, member.path, member.target);
      else await files.writeFile(base, member.path, member.content, member.mode);
    }
  },
  async scan({ files, stdout }, root, path) {
    const base = files.inside(root, path);
    await stdout(record(await files.stat("/", base)));
    for (const entry of await files.list("/", base, true)) await stdout(record(entry));
  },
  async cat(process, root, path) {
    const base = process.files.inside(root, path);
    const names = (await everything(process.stdin))
      .toString()
      .split("\0")
      .filter((name) => name !== "");
    for (const name of names) {
      const content = await process.files.readFile(base, name).catch(() => undefined);
      const head = new FieldWriter(0).u8(content === undefined ? 1 : 0).u64(content?.length ?? 0);
      await process.stdout(Buffer.concat([head.finish().subarray(5), content ?? Buffer.alloc(0)]));
    }
  },
  async watch({ files, stdout, stdin, signal }, root, path, [sync]) {
    const base = files.inside(root, path);
    await files.stat("/", base);
    if (sync === "sync") {
      // Every question has the answer that a scan must tell.
      await stdout(Buffer.from([0]));
      for await (const questions of stdin) for (const _ of questions) await stdout(Buffer.from([4, 0]));
      return;
    }
    const stop = files.watch("/", base, ({ kind, path: changed }) => {
      void stdout(event(kind, changed)).catch(() => undefined);
    });
    await stdout(event(0, ""));
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    stop();
  },
  async du({ files, stdout }, root, path) {
    const entries = await files.list("/", files.inside(root, path), true);
    const bytes = entries.reduce((total, entry) => total + (entry.type === 1 ? entry.size : 0), 0);
    await stdout(new FieldWriter(0).u64(bytes).u64(entries.length).finish().subarray(5));
  },
};

/** Undefined for a tool the supervisor does not have. */
export function fakeTool(name: string): FakeProgram | undefined {
  const tool = TOOLS[name];
  if (tool === undefined) return undefined;
  return async (process) => {
    const [, root = "/", path = "", ...rest] = process.argv;
    try {
      await tool(process, root, path, rest);
      return 0;
    } catch (error) {
      const { code = "EIO", message } = error as NodeJS.ErrnoException;
      await process.stderr(`${code} ${message}\n`);
      return 1;
    }
  };
}

function record(entry: FakeEntry): Buffer {
  return new FieldWriter(0, 128)
    .u8(entry.type)
    .u32(entry.mode)
    .u32(entry.uid)
    .u32(entry.gid)
    .u64(entry.size)
    .u64(entry.mtimeNs)
    .u64(entry.ctimeNs)
    .u64(entry.inode)
    .str(entry.path)
    .str(entry.target)
    .finish()
    .subarray(5);
}

function event(kind: number, path: string): Buffer {
  return new FieldWriter(0).u8(kind).str(path).finish().subarray(5);
}

async function everything(stdin: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stdin) chunks.push(chunk);
  return Buffer.concat(chunks);
}
