import { randomBytes } from "node:crypto";
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { connect } from "node:net";
import { describe, expect, test } from "vitest";
import { type AidoUnderTest, output } from "../contract/aido-contract.ts";
import { ended, running, sshBed } from "./ssh-bed.ts";

/** OpenSSH's own clients against a real sandbox whose image has no sshd. */
export function sshContract(under: AidoUnderTest): void {
  describe(`SSH to a sandbox, with the ${under.driver} driver`, () => {
    test("S2-45 S2-46 a key that was provisioned logs in and runs a command", async () => {
      await using bed = await sshBed(under);
      const key = await bed.allowedKey();
      const both = await bed.ssh(key, ["echo out; echo err >&2; pwd; exit 3"]);
      expect(both).toMatchObject({ code: 3, stderr: "err\n" });
      expect(both.stdout).toBe(`out\n${(await bed.aido.sandboxes.get(bed.id)).workdir}\n`);
      const events = await bed.events();
      const told = events.map(({ event }) => event);
      expect(told).toEqual(
        expect.arrayContaining(["ssh.key.added", "ssh.login", "ssh.command", "exec.ended"]),
      );
      const { detail } = events.find(({ event }) => event === "ssh.command") ?? {};
      expect((await bed.aido.execs.get(bed.id, String(detail?.["execId"]))).exitCode).toBe(3);
    });

    test("input, also large and binary, arrives whole, ends, and comes back whole", async () => {
      await using bed = await sshBed(under);
      const key = await bed.allowedKey();
      const data = randomBytes(5_000_000);
      writeFileSync(bed.path("in"), data);
      const child = bed.start(key, "cat > copy; sha256sum < copy; cat copy | base64 -w0");
      const { createHash } = await import("node:crypto");
      child.stdin?.end(data);
      const { code, stdout } = await ended(child);
      expect(code).toBe(0);
      const [sum = "", text = ""] = stdout.split("\n");
      expect(sum.slice(0, 64)).toBe(createHash("sha256").update(data).digest("hex"));
      expect(Buffer.from(text, "base64").equals(data)).toBe(true);
    });

    test("a terminal has the client's size and type, and a shell runs on it", async () => {
      await using bed = await sshBed(under);
      const key = await bed.allowedKey();
      const child = bed.start(key, "-tt");
      const done = ended(child);
      child.stdin?.write("stty size; echo T=$TERM; tty >/dev/null && echo is''tty; exit 7\n");
      const { code, stdout } = await done;
      expect(code).toBe(7);
      expect(stdout).toMatch(/\d+ \d+/);
      expect(stdout).toContain("istty");
    });

    test("a command and a file transfer start a stopped sandbox that comes back when used, and no other", async () => {
      await using plain = await sshBed(under);
      await plain.aido.sandboxes.stop(plain.id);
      expect((await plain.ssh(await plain.allowedKey(), ["true"])).code).not.toBe(0);
      expect(await plain.aido.sandboxes.get(plain.id)).toMatchObject({ state: "stopped" });

      await using bed = await sshBed(under, { autoResume: true });
      const key = await bed.allowedKey();
      await bed.ssh(key, ["echo kept > file"]);
      await bed.aido.sandboxes.stop(bed.id);
      expect(await bed.ssh(key, ["cat file"])).toMatchObject({ code: 0, stdout: "kept\n" });
      await bed.aido.sandboxes.stop(bed.id);
      expect(await bed.scp(key, bed.remote("file"), bed.path("copy"))).toMatchObject({ code: 0 });
      expect(readFileSync(bed.path("copy"), "utf8")).toBe("kept\n");
    });

    test("a client that goes away takes its command with it", async () => {
      await using bed = await sshBed(under);
      const key = await bed.allowedKey();
      const child = bed.start(key, "echo ready; sleep 600");
      const done = ended(child);
      await expect.poll(() => running(bed.aido, bed.id), { timeout: 20_000 }).toBe(1);
      child.kill("SIGKILL");
      await done;
      await expect.poll(() => running(bed.aido, bed.id), { timeout: 20_000 }).toBe(0);
    });

    test("variables are passed, and one connection has several sessions at once", async () => {
      await using bed = await sshBed(under);
      const key = await bed.allowedKey();
      const control = bed.path("control");
      const shared = ["-o", "ControlMaster=auto", "-o", `ControlPath=${control}`, "-o", "ControlPersist=no"];
      const child = bed.start(key, ...["-o", "SetEnv=COLOUR=blue"], ...shared, "echo $COLOUR; cat");
      await expect.poll(() => running(bed.aido, bed.id), { timeout: 20_000 }).toBe(1);
      const second = await bed.ssh(key, [...shared, "echo second"]);
      expect(second).toMatchObject({ code: 0, stdout: "second\n" });
      const done = ended(child);
      child.stdin?.end("last");
      expect((await done).stdout).toBe("blue\nlast");
    });

    test("S2-47 a revoked key is refused at once, and connections made with it end", async () => {
      await using bed = await sshBed(under);
      const key = await bed.allowedKey();
      const other = await bed.allowedKey("other");
      const child = bed.start(key, "sleep 600");
      const kept = bed.start(other, "cat");
      const [done, stays] = [ended(child), ended(kept)];
      await expect.poll(() => running(bed.aido, bed.id), { timeout: 20_000 }).toBe(2);
      expect(await bed.aido.ssh.removeKey(bed.id, { key: bed.publicKey(key) })).toBe(true);
      expect((await done).code).toBe(255);
      const refused = await bed.ssh(key, ["true"]);
      expect(refused).toMatchObject({ code: 255 });
      expect(refused.stderr).toContain("Permission denied (publickey)");
      kept.stdin?.end("alive");
      expect(await stays).toMatchObject({ code: 0, stdout: "alive" });
      expect(await bed.aido.ssh.removeKey(bed.id, { key: bed.publicKey(key) })).toBe(false);
    });

    test("S2-47 a key revoked by another process ends its connections too", async () => {
      await using bed = await sshBed(under);
      const key = await bed.allowedKey();
      const child = bed.start(key, "sleep 600");
      const done = ended(child);
      await expect.poll(() => running(bed.aido, bed.id), { timeout: 20_000 }).toBe(1);
      const elsewhere = await bed.place.open();
      const [{ fingerprint = "" } = {}] = await elsewhere.ssh.keys(bed.id);
      expect(await elsewhere.ssh.removeKey(bed.id, { key: fingerprint })).toBe(true);
      expect((await done).code).toBe(255);
    });

    test("keys of other sandboxes, other users, other types and no key at all are refused", async () => {
      await using bed = await sshBed(under);
      const key = await bed.allowedKey();
      const stranger = bed.key("stranger");
      const { id: neighbour } = await bed.aido.sandboxes.create({ ttlMs: 120_000 });
      for (const [file, login] of [
        [stranger, bed.id],
        [key, neighbour],
        [key, bed.id.slice(0, 4)],
        [key, `root.${bed.id}`],
        [key, "nobody"],
        [key, `../${bed.id}`],
      ] as const) {
        expect((await bed.ssh(file, ["true"], "", login)).code, login).toBe(255);
      }
      const password = ["-o", "PreferredAuthentications=password,keyboard-interactive"];
      expect((await bed.ssh(key, [...password, "true"])).stderr).toContain("Permission denied (publickey)");
      const rsa = bed.key("rsa", "-t", "rsa", "-b", "2048");
      await bed.aido.ssh.addKey(bed.id, { publicKey: bed.publicKey(rsa) });
      expect((await bed.ssh(rsa, ["echo rsa"])).stdout).toBe("rsa\n");
      const weak = ["-o", "PubkeyAcceptedAlgorithms=ssh-rsa"];
      expect((await bed.ssh(rsa, [...weak, "true"])).code).toBe(255);
      const ecdsa = bed.key("ecdsa", "-t", "ecdsa", "-b", "384");
      await bed.aido.ssh.addKey(bed.id, { publicKey: bed.publicKey(ecdsa) });
      expect((await bed.ssh(ecdsa, ["echo ecdsa"])).stdout).toBe("ecdsa\n");
    });

    test("S2-46 scp and sftp carry files and trees both ways", async () => {
      await using bed = await sshBed(under);
      const key = await bed.allowedKey();
      const data = randomBytes(3_000_001);
      writeFileSync(bed.path("data"), data);
      chmodSync(bed.path("data"), 0o750);
      utimesSync(bed.path("data"), 1_000_000_000, 1_000_000_000);
      expect(await bed.scp(key, bed.path("data"), bed.remote("up"))).toMatchObject({ code: 0, stderr: "" });
      expect(await bed.scp(key, bed.remote("up"), bed.path("back"))).toMatchObject({ code: 0 });
      expect(readFileSync(bed.path("back")).equals(data)).toBe(true);
      expect(await output(bed.aido, bed.id, ["sh", "-c", "stat -c '%a %s' up"])).toBe("750 3000001\n");
      expect(await bed.scp(key, bed.path("data"), bed.remote("kept"), "-p")).toMatchObject({ code: 0 });
      expect(await output(bed.aido, bed.id, ["stat", "-c", "%a %Y", "kept"])).toBe("750 1000000000\n");
      writeFileSync(bed.path("short"), "short");
      expect(await bed.scp(key, bed.path("short"), bed.remote("up"))).toMatchObject({ code: 0 });
      expect(await output(bed.aido, bed.id, ["cat", "up"])).toBe("short");
      mkdirSync(bed.path("tree/deep"), { recursive: true });
      writeFileSync(bed.path("tree/deep/a b"), "spaced");
      symlinkSync("deep/a b", bed.path("tree/link"));
      expect(await bed.scp(key, bed.path("tree"), bed.remote("."), "-r")).toMatchObject({ code: 0 });
      expect(await bed.scp(key, bed.remote("tree"), bed.path("tree2"), "-r")).toMatchObject({ code: 0 });
      expect(readFileSync(bed.path("tree2/deep/a b"), "utf8")).toBe("spaced");
      expect(statSync(bed.path("tree2/deep")).isDirectory()).toBe(true);
      expect(bed.uses.map(({ operation }) => operation)).toContain("sshFiles");
    });

    test("sftp makes, renames, links, changes and removes, and says what it cannot", async () => {
      await using bed = await sshBed(under);
      const key = await bed.allowedKey();
      writeFileSync(bed.path("data"), "0123456789");
      const steps = [
        "mkdir dir",
        "cd dir",
        `put ${bed.path("data")} one`,
        "chmod 600 one",
        "chmod 700 .",
        "rename one two",
        "ln -s two link",
        "ls -l",
        `get link ${bed.path("got")}`,
        "pwd",
      ];
      const first = await bed.sftp(key, steps);
      expect(first, first.stderr).toMatchObject({ code: 0 });
      expect(readFileSync(bed.path("got"), "utf8")).toBe("0123456789");
      expect(first.stdout).toMatch(/-rw------- .* two/);
      const look = "stat -c '%a %s' dir/two; readlink dir/link; stat -c %a dir";
      expect(await output(bed.aido, bed.id, ["sh", "-c", look])).toBe("600 10\ntwo\n700\n");
      for (const [wrong, said] of [
        ["rmdir dir", "Failure"],
        ["rm missing", "No such file"],
        ["mkdir dir", "Failure"],
        ["mkdir no/where", "No such file"],
        ["rename dir/two dir/link", "Failure"],
        [`put ${bed.path("data")} /proc/nothing`, ""],
        ["get dir/nothing", "not found"],
      ] as const) {
        const failed = await bed.sftp(key, [wrong]);
        expect(failed.code, wrong).toBe(1);
        expect(failed.stderr, wrong).toContain(said);
      }
      writeFileSync(bed.path("data"), "0123456789abcdef");
      const second = [`reput ${bed.path("data")} dir/two`, "rm dir/link", "rename dir/two dir/three"];
      expect(await bed.sftp(key, second)).toMatchObject({ code: 0 });
      expect(await output(bed.aido, bed.id, ["cat", "dir/three"])).toBe("0123456789abcdef");
      expect(await bed.sftp(key, ["rm dir/three", "rmdir dir"])).toMatchObject({ code: 0 });
      expect((await bed.events()).map(({ event }) => event)).toEqual(
        expect.arrayContaining(["ssh.sftp", "files.write", "files.move", "files.remove", "files.mkdir"]),
      );
    });

    test("a port inside is forwarded; other addresses are not", async () => {
      await using bed = await sshBed(under);
      const key = await bed.allowedKey();
      const serve = `
import socket
server = socket.create_server(("127.0.0.1", 8090))
while True:
    peer, _ = server.accept()
    data = b""
    while chunk := peer.recv(65536): data += chunk
    peer.sendall(data[::-1])
    peer.close()
`;
      await bed.aido.execs.start(bed.id, { argv: ["python3", "-c", serve] });
      const control = bed.path("forward");
      const child = bed.start(key, "-N", "-L", `${control}:127.0.0.1:8090`, "-L", `${control}2:10.0.0.1:80`);
      const ask = (path: string) =>
        new Promise<string>((resolve, reject) => {
          const socket = connect(path, () => socket.end("hello"));
          let text = "";
          socket.on("data", (chunk: Buffer) => {
            text += chunk.toString();
          });
          socket.on("end", () => resolve(text)).on("error", reject);
        });
      await expect.poll(() => ask(control).catch(() => ""), { timeout: 30_000 }).toBe("olleh");
      expect(await ask(`${control}2`).catch(() => "")).toBe("");
      child.kill("SIGTERM");
      expect(bed.uses.map(({ operation }) => operation)).toContain("sshForward");
    });

    test("a destroyed sandbox ends its connections; a stopped one says that it does not run", async () => {
      await using bed = await sshBed(under);
      const key = await bed.allowedKey();
      await bed.aido.sandboxes.stop(bed.id);
      const stopped = await bed.ssh(key, ["true"]);
      expect(stopped.code).toBe(255);
      expect(stopped.stderr).toContain("is stopped");
      await bed.aido.sandboxes.start(bed.id);
      const child = bed.start(key, "-N");
      const done = ended(child);
      const loggedIn = async () => (await bed.events()).filter(({ event }) => event === "ssh.login").length;
      await expect.poll(loggedIn, { timeout: 20_000 }).toBe(2);
      await bed.aido.sandboxes.destroy(bed.id);
      expect((await done).code).toBe(255);
      expect((await bed.ssh(key, ["true"])).stderr).toContain("Permission denied");
    });

    test("a login as another user runs as that user, and an unknown user is refused", async () => {
      await using bed = await sshBed(under);
      const file = bed.key("second");
      const publicKey = bed.publicKey(file);
      const unknown = bed.aido.ssh.addKey(bed.id, { publicKey, username: "nosuchuser" });
      await expect(unknown).rejects.toMatchObject({ code: "VALIDATION_ERROR" });
      const own = (await output(bed.aido, bed.id, ["id", "-u"])).trim();
      const username = own;
      await bed.aido.ssh.addKey(bed.id, { publicKey, username });
      expect((await bed.ssh(file, ["id -u"], "", `${username}.${bed.id}`)).stdout).toBe(`${own}\n`);
      expect((await bed.ssh(file, ["id -u"])).code).toBe(255);
    });
  });
}
