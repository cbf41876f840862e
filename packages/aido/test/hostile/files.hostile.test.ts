import { lstat, mkdir, readdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import { isAidoError } from "@aido/sdk/protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { copyOut } from "../../src/cli/commands/copy-out.ts";
import { DRIVERS, Range, type Target } from "./range.ts";

const links = (canary: string, directory: string) => `
import os
for name, to in (("absolute", ${JSON.stringify(canary)}), ("climbing", "../" * 40 + ${JSON.stringify(canary.slice(1))}),
                 ("directory", ${JSON.stringify(directory)}), ("root", "/"), ("self", "self"), ("one", "two"), ("two", "one"),
                 ("process", "/proc/1/root" + ${JSON.stringify(canary)}), ("own", "/proc/self/root" + ${JSON.stringify(canary)}),
                 ("magic", "/proc/self/fd/0"), ("cwd", "/proc/1/cwd"), ("shadow", "/etc/shadow")):
    os.symlink(to, name)
for source in ("/etc/passwd", "/.aido/aido-agent", "/usr/bin/env", "/inputs"):
    name = "hard" + source.replace("/", "-")
    try: os.link(source, name)
    except OSError: continue
    # A second name of the image's own file, which some kernels permit, must give no more than the first.
    if os.access(name, os.W_OK) or source not in ("/etc/passwd", "/usr/bin/env"): print("linked", source)
print("made")
`;
/** A name that is a directory at one moment and a link to somewhere else at the next. */
const race = (to: string) => `
import os
os.makedirs("real", exist_ok=True)
open("real/file", "w").write("inside")
os.symlink(${JSON.stringify(to)}, "link")
print("racing", flush=True)
os.rename("real", "swap")
while True:
    os.rename("swap", "real"); os.rename("link", "swap")
    os.rename("swap", "link"); os.rename("real", "swap")
`;
const ODD_NAMES = `
import os
os.makedirs(b"odd/\\xff\\xfe\\x80dir")
for name in (b"\\xff", b"\\xc3\\x28", b"new\\nline", b"tab\\there", b"\\x1b[2J\\x1b]0;pwned\\x07", b"-rf", b"--help", b"a\\\\b",
             b"C:\\\\x", b"~", b"$HOME", b"%2e%2e%2f", b"..\\xc0\\xaf", b"x" * 255, b"CON", b" ", b"..."):
    open(b"odd/" + name, "w").write("odd")
open(b"odd/\\xff\\xfe\\x80dir/in", "w").write("odd")
print(len(os.listdir("odd")))
`;
const HOSTILE_TREE = (canary: string) => `
import os, socket
os.makedirs("tree/d")
os.chdir("tree")
os.symlink(${JSON.stringify(canary)}, "absolute")
os.symlink("../" * 40 + ${JSON.stringify(canary.slice(1))}, "climbing")
os.symlink("d", "harmless")
os.symlink(${JSON.stringify(canary.slice(0, canary.lastIndexOf("/")))}, "outside")
os.mkfifo("pipe")
s = socket.socket(socket.AF_UNIX); s.bind("socket")
open("d/file", "w").write("inside")
open("setuid", "w").write("x"); os.chmod("setuid", 0o6777)
os.link("d/file", "hard")
open("sparse", "w").truncate(1 << 20)
print("made")
`;

for (const driver of DRIVERS) {
  describe(`attacks through files from ${driver}`, () => {
    let range: Range;
    beforeAll(async () => {
      range = await Range.open(driver);
    });
    afterAll(async () => {
      await range[Symbol.asyncDispose]();
    });
    /** Runs and gives back what it read; a refusal is a good answer, anything but an AidoError is not. */
    const tried = async (work: () => Promise<unknown>): Promise<string> => {
      try {
        return JSON.stringify(await work());
      } catch (error) {
        expect(error).toSatisfy((each) => isAidoError(each));
        return "refused";
      }
    };

    test("links of every kind lead to nothing of the host, whatever is done with them", async () => {
      await using target = await range.sandbox();
      const { canaries, aido } = range;
      expect((await target.attack(links(canaries.file, canaries.directory))).stdout).toBe("made\n");
      const names = (await aido.files.list(target.id, ".")).map(({ path }) => path);
      for (const name of [...names, "directory/secret", `root${canaries.file}`]) {
        expect(await tried(() => target.read(name))).not.toContain(canaries.secret);
        await tried(() => aido.files.write(target.id, `${name}/x`, Buffer.from("x")));
        await tried(() => aido.files.list(target.id, name));
        await tried(() => aido.files.mkdir(target.id, `${name}/made`));
      }
      const tar: Uint8Array[] = [];
      for await (const chunk of aido.files.tarOut(target.id, ".")) tar.push(chunk);
      expect(Buffer.concat(tar).includes(canaries.secret)).toBe(false);
      for (const { path } of await aido.files.list(target.id, ".")) await aido.files.remove(target.id, path);
      expect(await aido.files.list(target.id, ".")).toEqual([]);
      await target.answers();
    });

    test("a name that changes between directory and link is never followed out of the workdir", async () => {
      await using target = await range.sandbox();
      const { aido } = range;
      await target.attack(
        "import os; os.mkdir('/tmp/outside'); open('/tmp/outside/file', 'w').write('outside')",
      );
      await target.begun(race("/tmp/outside"), "racing");
      for (let turn = 0; turn < 60; turn++) {
        expect(await tried(() => target.read("swap/file"))).not.toContain("outside");
        await tried(() => aido.files.write(target.id, "swap/planted", Buffer.from("planted")));
        await tried(() => aido.files.list(target.id, "swap", { recursive: true }));
        await tried(() => aido.files.remove(target.id, "swap/file"));
        await tried(() => aido.files.move(target.id, "swap/planted", "swap/moved"));
      }
      expect((await target.attack("import os; print(sorted(os.listdir('/tmp/outside')))")).stdout).toBe(
        "['file']\n",
      );
      await target.answers();
    });

    test("a tree that changes while it is archived, scanned and removed gives nothing of the host", async () => {
      await using target = await range.sandbox();
      await target.begun(race(range.canaries.directory), "racing");
      for (let turn = 0; turn < 20; turn++) {
        const chunks: Uint8Array[] = [];
        await tried(async () => {
          for await (const chunk of range.aido.files.tarOut(target.id, ".")) chunks.push(chunk);
        });
        expect(Buffer.concat(chunks).includes(range.canaries.secret)).toBe(false);
        await tried(() => range.aido.files.remove(target.id, "swap"));
      }
    });

    test("names that are not text, act on terminals or look like options come out as they are", async () => {
      await using target = await range.sandbox();
      expect((await target.attack(ODD_NAMES)).stdout).toBe("18\n");
      const entries = await range.aido.files.list(target.id, "odd", { recursive: true });
      expect(entries).toHaveLength(19);
      const to = join(range.root, `odd-${target.id}`);
      await mkdir(to);
      const copied = await copyOut(range.aido, { sandbox: target.id, from: "odd", to, cwd: range.root });
      const arrived = await readdir(join(to, "odd"), { encoding: "buffer" });
      expect(arrived.length + copied.skipped.length).toBeGreaterThanOrEqual(18);
      await range.aido.files.remove(target.id, "odd");
      await target.answers();
    });

    test("copying a hostile tree out follows no link, makes no device, pipe or set-id file", async () => {
      await using target = await range.sandbox();
      expect((await target.attack(HOSTILE_TREE(range.canaries.file))).stdout).toBe("made\n");
      const to = join(range.root, `tree-${target.id}`);
      await mkdir(to);
      await copyOut(range.aido, { sandbox: target.id, from: "tree", to, cwd: range.root });
      const out = join(to, "tree");
      expect((await readdir(out)).sort()).toEqual(["d", "hard", "harmless", "setuid", "sparse"]);
      expect((await lstat(join(out, "hard"))).ino).toBe((await lstat(join(out, "d", "file"))).ino);
      expect(await readlink(join(out, "harmless"))).toBe("d");
      expect(await readFile(join(out, "d", "file"), "utf8")).toBe("inside");
      expect((await lstat(join(out, "setuid"))).mode & 0o7000).toBe(0);
    });

    test("a single link, pipe or device is not copied out as what it stands for", async () => {
      await using target = await range.sandbox();
      await target.attack(HOSTILE_TREE(range.canaries.file));
      for (const name of ["absolute", "climbing", "outside", "pipe", "socket"]) {
        const to = join(range.root, `one-${target.id}-${name}`);
        const request = { sandbox: target.id, from: `tree/${name}`, to, cwd: range.root };
        await tried(() => copyOut(range.aido, request));
        const content = await readFile(to, "utf8").catch(() => "nothing");
        expect(content).not.toContain(range.canaries.secret);
        expect((await lstat(to).catch(() => undefined))?.isSymbolicLink() ?? false).toBe(false);
      }
      for (const name of ["/dev/zero", "/dev/null", "/proc/self/mem"]) {
        expect(await tried(() => readSome(range, target, name))).not.toContain(range.canaries.secret);
      }
      await target.answers();
    });

    test("an archive with names that climb, devices and links in the way is refused inside", async () => {
      await using target = await range.sandbox();
      for (const [name, type, link] of [
        ["../climbed", "0", ""],
        ["/tmp/absolute", "0", ""],
        ["device", "3", ""],
        ["pipe", "6", ""],
        ["hard", "1", "/etc/passwd"],
        ["hard", "1", "../../etc/passwd"],
      ] as const) {
        const archive = tarEntry(name, type, link);
        const put = range.aido.files.tarIn(target.id, "in", one(archive));
        await expect(put).rejects.toSatisfy((error) => isAidoError(error));
      }
      const { stdout } = await target.attack(
        "import os; print(os.listdir('in'), os.path.exists('climbed'), os.path.exists('/tmp/absolute'))",
      );
      expect(stdout).toBe("[] False False\n");
      await target.answers();
    });
  });
}

async function readSome(range: Range, target: Target, path: string): Promise<string> {
  let bytes = 0;
  let text = "";
  for await (const chunk of range.aido.files.read(target.id, path, AbortSignal.timeout(5_000))) {
    bytes += chunk.length;
    text += Buffer.from(chunk.subarray(0, 100)).toString("latin1");
    if (bytes > 1024 * 1024) throw new Error(`${path} has no end`);
  }
  return text;
}

async function* one(chunk: Uint8Array): AsyncGenerator<Uint8Array> {
  yield chunk;
}

/** A ustar archive of one empty entry, written by hand because no honest writer makes these. */
function tarEntry(name: string, type: string, link: string): Uint8Array {
  const header = Buffer.alloc(512);
  header.write(name, 0, 100);
  header.write("0000777\0", 100);
  header.write("0000000\0", 108);
  header.write("0000000\0", 116);
  header.write("00000000000\0", 124);
  header.write("00000000000\0", 136);
  header.write("        ", 148);
  header.write(type, 156);
  header.write(link, 157, 100);
  header.write("ustar\0", 257);
  header.write("00", 263);
  header.write("0000001\0", 329);
  header.write("0000001\0", 337);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return Buffer.concat([header, Buffer.alloc(1024)]);
}
