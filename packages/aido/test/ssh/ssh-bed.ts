import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CreateSandbox } from "@aido/sdk/protocol";
import { openSsh } from "../../src/compose/open-ssh.ts";
import { loadConfig } from "../../src/config/load-config.ts";
import type { CoreAido } from "../../src/core/core-aido.ts";
import { StreamLogger } from "../../src/log/stream-logger.ts";
import type { SshUse } from "../../src/ssh/ssh-connection.ts";
import { type AidoUnderTest, openPlace } from "../contract/aido-contract.ts";

const LIMIT_MS = 60_000;

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** A sandbox, a server that takes SSH logins to it, and keys and clients of OpenSSH. */
export async function sshBed(under: AidoUnderTest, request: CreateSandbox = {}) {
  const place = openPlace(under);
  const directory = mkdtempSync(join(tmpdir(), "aido-ssh-"));
  const aido = await place.open();
  const { id } = await aido.sandboxes.create({ ttlMs: 300_000, ...request });
  const { config } = loadConfig({
    env: { XDG_CONFIG_HOME: "/nowhere" },
    cwd: directory,
    flags: { dataDir: place.root, "serve.sshPort": "0" },
  });
  const logger = new StreamLogger({
    level: "silent",
    format: "json",
    write: () => undefined,
    now: () => new Date(),
  });
  const uses: SshUse[] = [];
  const server = await openSsh({ aido, config, logger, onUse: (use) => uses.push(use) });
  const address = await aido.ssh.address(id);
  const knownHosts = join(directory, "known_hosts");
  writeFileSync(knownHosts, `[127.0.0.1]:${address.port} ${address.hostKey}\n`);
  const clients = new Set<ChildProcess>();
  const options = (key: string) => [
    ...["-F", "none", "-i", key, "-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none"],
    ...["-o", `UserKnownHostsFile=${knownHosts}`, "-o", "StrictHostKeyChecking=yes", "-o", "BatchMode=yes"],
  ];
  const start = (program: string, argv: readonly string[]): ChildProcess => {
    const child = spawn(program, argv, { stdio: "pipe" });
    clients.add(child);
    child.once("close", () => clients.delete(child));
    child.stdin?.on("error", () => undefined);
    return child;
  };
  const run = (program: string, argv: readonly string[], stdin: string | Buffer = ""): Promise<Ended> => {
    const child = start(program, argv);
    child.stdin?.end(stdin);
    return ended(child);
  };
  const bed = {
    place,
    aido,
    id,
    /** What the audit log is told. */
    uses,
    directory,
    port: address.port,
    path: (name: string) => join(directory, name),
    key(name: string, ...argv: string[]): string {
      const file = join(directory, name);
      const type = argv.length === 0 ? ["-t", "ed25519"] : argv;
      execFileSync("ssh-keygen", ["-q", "-N", "", "-C", "me@laptop", "-f", file, ...type]);
      return file;
    },
    publicKey: (file: string) => readFileSync(`${file}.pub`, "utf8"),
    /** A key that may log in. */
    async allowedKey(name = "id", username?: string): Promise<string> {
      const file = bed.key(name);
      await aido.ssh.addKey(id, { publicKey: bed.publicKey(file), username });
      return file;
    },
    sshArguments: (key: string, login: string, ...rest: string[]) => [
      ...options(key),
      ...["-p", String(address.port), `${login}@127.0.0.1`, ...rest],
    ],
    start: (key: string, ...command: string[]) => start("ssh", bed.sshArguments(key, id, ...command)),
    ssh: (key: string, command: readonly string[], stdin: string | Buffer = "", login = id) =>
      run("ssh", bed.sshArguments(key, login, ...command), stdin),
    scp: (key: string, from: string, to: string, ...flags: string[]) =>
      run("scp", [...options(key), "-P", String(address.port), ...flags, from, to]),
    remote: (path: string) => `${id}@127.0.0.1:${path}`,
    sftp: (key: string, commands: readonly string[]) =>
      run(
        "sftp",
        [...options(key), "-P", String(address.port), "-b", "-", `${id}@127.0.0.1`],
        `${commands.join("\n")}\n`,
      ),
    events: async (): Promise<{ event: string; detail: Readonly<Record<string, unknown>> }[]> => {
      const events: { event: string; detail: Readonly<Record<string, unknown>> }[] = [];
      for await (const entry of aido.evidence.read(id)) {
        events.push({ event: entry.event, detail: entry.detail ?? {} });
      }
      return events;
    },
    async [Symbol.asyncDispose]() {
      for (const child of clients) child.kill("SIGKILL");
      await server?.close();
      await place[Symbol.asyncDispose]();
      rmSync(directory, { recursive: true, force: true });
    },
  };
  return bed;
}

export type SshBed = Awaited<ReturnType<typeof sshBed>>;

export async function ended(child: ChildProcess): Promise<Ended> {
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout?.on("data", (chunk: Buffer) => out.push(chunk));
  child.stderr?.on("data", (chunk: Buffer) => err.push(chunk));
  const timer = setTimeout(() => child.kill("SIGKILL"), LIMIT_MS);
  const [code] = (await once(child, "close")) as [number | null];
  clearTimeout(timer);
  return { code, stdout: Buffer.concat(out).toString(), stderr: Buffer.concat(err).toString() };
}

export function running(aido: CoreAido, id: string): Promise<number> {
  return aido.execs.list(id).then((execs) => execs.filter((exec) => exec.status === "running").length);
}
