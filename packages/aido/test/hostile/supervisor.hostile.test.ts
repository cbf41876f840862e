import { isAidoError } from "@aido/sdk/protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DRIVERS, Range } from "./range.ts";

/** Prints every byte of the supervisor that can be had: of the first process, and of the one that started this. */
const SPY = `
import os
def show(path):
    try: data = os.read(os.open(path, os.O_RDONLY | os.O_NONBLOCK), 4096)
    except OSError: return
    if data: print("READ", path, data[:80])
for pid in ("1", str(os.getppid())):
    for name in ("environ", "mem", "maps", "smaps", "auxv", "stack", "syscall", "io", "pagemap", "personality"):
        show("/proc/%s/%s" % (pid, name))
    for name in ("fd", "map_files", "fdinfo"):
        try: print("LISTED", pid, name, os.listdir("/proc/%s/%s" % (pid, name)))
        except OSError: pass
    for name in ("root", "cwd", "exe"):
        try: print("LINK", pid, name, os.readlink("/proc/%s/%s" % (pid, name)))
        except OSError: pass
    for name in range(64):
        try: print("OPENED", os.open("/proc/%s/fd/%d" % (pid, name), os.O_RDWR))
        except OSError: pass
print("done")
`;
const replaceAgent = (paths: readonly string[]) => `
import os
for path in ${JSON.stringify(paths)}:
    for work in (lambda: open(path, "w"), lambda: os.remove(path), lambda: os.rename(path, path + ".old"),
                 lambda: os.chmod(path, 0o777), lambda: os.symlink("/tmp", path)):
        try: work()
        except OSError: continue
        print("DID", path)
print("done")
`;
const CONNECT = `
import glob, os, socket
found = set(glob.glob("/run/aido/*") + glob.glob("/run/*.sock") + ["/run/aido/agent.sock"])
for line in open("/proc/net/unix").read().splitlines()[1:]:
    path = line.split(maxsplit=7)[7:]
    if path: found.add(path[0].replace("@", chr(0)))
for path in found:
    peer = socket.socket(socket.AF_UNIX)
    peer.settimeout(2)
    try:
        peer.connect(path)
        print("CONNECTED", repr(path))
    except OSError: pass
print("done")
`;
/** As root, who can reach the socket: strangers, noise, wrong tokens, half frames, and every place taken. */
const PESTER = `
import os, socket, struct
def peer():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(5)
    s.connect("/run/aido/agent.sock")
    return s
def hello(token): return struct.pack("<IBH", 35, 1, 1) + token
answers = set()
for message in (b"GET / HTTP/1.1\\r\\n\\r\\n", hello(bytes(32)), hello(os.urandom(32)), struct.pack("<I", 0xffffffff) + b"x" * 100,
                struct.pack("<IB", 1, 0x0d), struct.pack("<IBI", 5, 0x0d, 0), struct.pack("<I", 0), os.urandom(4096)):
    s = peer()
    s.sendall(message)
    try: answers.add(s.recv(4096)[4:5])
    except OSError: pass
    s.close()
held = []
for _ in range(200):
    try:
        s = peer()
        s.sendall(hello(bytes(32))[:20])
        held.append(s)
    except OSError: pass
print("welcomed" if b"\\x81" in answers else "refused", flush=True)
import time
time.sleep(600)
`;
/** What is put where the socket was; each leaves something that a careless host would follow, open or believe. */
const REPLACEMENTS: Readonly<Record<string, string>> = {
  "a file": "open(path, 'w').write('x' * 100)",
  "a directory": "os.mkdir(path)",
  "a pipe": "os.mkfifo(path)",
  "a link to a socket of the host": "os.symlink(canary, path)",
  "a listener that talks nonsense": "serve(lambda s: s.sendall(os.urandom(65536)))",
  "a listener that promises endless frames":
    "serve(lambda s: s.sendall(struct.pack('<I', 0xfffffff0) + bytes(1 << 20)))",
};
/** Could be a supervisor that is slow: worth a wait, but one that ends when the caller no longer wants to. */
const SILENCES: Readonly<Record<string, string>> = {
  "nothing at all": "pass",
  "a listener that says nothing": "serve(lambda s: time.sleep(600))",
  "a listener that hangs up": "serve(lambda s: s.close())",
};
const replaceSocket = (how: string, canary: string) => `
import os, socket, struct, time
canary = ${JSON.stringify(canary)}
path = "/run/aido/agent.sock"
os.remove(path)
def serve(answer):
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(64)
    print("replaced", flush=True)
    while True:
        s, _ = server.accept()
        try: answer(s)
        except OSError: pass
${how}
print("replaced", flush=True)
time.sleep(600)
`;

for (const driver of DRIVERS) {
  describe(`attacks on the supervisor on ${driver}`, () => {
    let range: Range;
    beforeAll(async () => {
      range = await Range.open(driver);
    });
    afterAll(async () => {
      await range[Symbol.asyncDispose]();
    });

    test("its memory, descriptors, environment and files are closed to what it runs", async () => {
      await using target = await range.sandbox();
      expect((await target.attack(SPY)).stdout).toBe("done\n");
    });

    test("neither it nor its directory can be replaced", async () => {
      await using target = await range.sandbox();
      const paths = ["/.aido/aido-agent", "/.aido"];
      // On local the socket is nowhere inside, and /run the sandbox's own.
      if (driver === "docker") paths.push("/run/aido/agent.sock", "/run/aido");
      expect((await target.attack(replaceAgent(paths))).stdout).toBe("done\n");
      await target.answers();
    });

    test("its socket cannot be found or connected to", async () => {
      await using target = await range.sandbox();
      expect((await target.attack(CONNECT)).stdout).toBe("done\n");
      await target.answers();
    });

    test.runIf(driver === "docker")("root inside reads nothing of it either", async () => {
      await using target = await range.sandbox();
      const { stdout } = await target.attack(SPY, { user: "0" });
      // How many descriptors it has is no secret; what they are is.
      expect(stdout.replaceAll(/^LISTED \d+ fd .*\n/gm, "")).toBe("done\n");
    });

    test.runIf(driver === "docker")(
      "root inside can pester it without being let in or shutting others out",
      async () => {
        await using target = await range.sandbox();
        const { id } = await target.begun(PESTER, "refused", { user: "0" });
        await target.answers();
        const other = await range.another();
        const exec = await other.execs.start(target.id, { argv: ["true"] });
        expect(await other.execs.wait(target.id, exec.id)).toMatchObject({ exitCode: 0 });
        await range.aido.execs.kill(target.id, id, { signal: "KILL" });
        await target.answers();
      },
    );

    test.runIf(driver === "docker").each(Object.entries(REPLACEMENTS))(
      "root inside puts %s in place of its socket: whoever comes anew is refused",
      async (_what, how) => {
        await using target = await range.sandbox();
        await target.begun(replaceSocket(how, range.canaries.socket), "replaced", { user: "0" });
        const other = await range.another();
        const failure = await other.execs
          .start(target.id, { argv: ["true"] })
          .catch((error: unknown) => error);
        expect(failure).toSatisfy((error) => isAidoError(error, "CONTAINER_LOST"));
        // Who was connected before is not disturbed.
        await target.answers();
      },
    );

    test.runIf(driver === "docker").each(Object.entries(SILENCES))(
      "root inside puts %s in place of its socket: whoever comes anew can give up",
      async (_what, how) => {
        await using target = await range.sandbox();
        await target.begun(replaceSocket(how, range.canaries.socket), "replaced", { user: "0" });
        const other = await range.another();
        const start = other.execs.start(target.id, { argv: ["true"] }, AbortSignal.timeout(1_000));
        await expect(start).rejects.toThrow();
        await target.answers();
        await other.sandboxes.destroy(target.id);
      },
    );
  });
}
