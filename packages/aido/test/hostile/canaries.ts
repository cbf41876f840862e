import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";

const SECRET = "the-host-keeps-this";
/** Settings of the host's kernel that an escape would like to change. */
const SETTINGS = [
  ...["core_pattern", "modprobe", "hostname", "sysrq", "panic", "randomize_va_space"],
  ...["pid_max", "threads-max", "shmmax", "shmall", "shmmni", "msgmax", "msgmnb", "msgmni", "sem"],
];

/** Things of the host that no sandbox may see, touch, end or reach. Everybody may read the file: only walls keep it. */
export class Canaries implements AsyncDisposable {
  readonly directory: string;
  readonly secret = SECRET;
  readonly port: number;
  readonly abstractName: string;
  readonly process: ChildProcess;
  readonly #servers: readonly Server[];
  readonly #settings = settings();
  #visits = 0;

  private constructor(directory: string, servers: readonly Server[], abstractName: string) {
    this.directory = directory;
    this.abstractName = abstractName;
    this.#servers = servers;
    for (const server of servers) {
      server.on("connection", (socket) => {
        this.#visits++;
        socket.on("error", () => undefined).end(SECRET);
      });
    }
    const address = servers[0]?.address();
    this.port = typeof address === "object" && address !== null ? address.port : 0;
    this.process = spawn("sleep", ["600"], { stdio: "ignore", env: { CANARY: SECRET } });
  }

  static async make(): Promise<Canaries> {
    const directory = await mkdtemp(join(tmpdir(), "aido-hostile-canary-"));
    await chmod(directory, 0o777);
    const abstractName = `aido-canary-${process.pid}-${Date.now()}`;
    await writeFile(join(directory, "secret"), SECRET);
    await chmod(join(directory, "secret"), 0o666);
    const servers = [
      await listening((server) => server.listen(0, "127.0.0.1")),
      await listening((server) => server.listen(`\0${abstractName}`)),
      await listening((server) => server.listen(join(directory, "socket"))),
    ];
    return new Canaries(directory, servers, abstractName);
  }

  get file(): string {
    return join(this.directory, "secret");
  }

  /** A Unix socket that whoever follows a link to it connects to. */
  get socket(): string {
    return join(this.directory, "socket");
  }

  async check(): Promise<void> {
    expect(await readFile(this.file, "utf8")).toBe(SECRET);
    expect((await readdir(this.directory)).sort()).toEqual(["secret", "socket"]);
    expect(this.#visits).toBe(0);
    expect([this.process.exitCode, this.process.signalCode]).toEqual([null, null]);
    expect(readFileSync(`/proc/${this.process.pid}/stat`, "utf8")).toMatch(/\) S /);
    expect(settings()).toEqual(this.#settings);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.process.kill("SIGKILL");
    for (const server of this.#servers) await new Promise((resolve) => server.close(resolve));
    await rm(this.directory, { recursive: true, force: true });
  }
}

/** Host processes that have `mark` in their environment: everything that a sandbox with that variable started. */
export function marked(mark: string): readonly string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, "latin1").includes(mark);
      } catch {
        return false;
      }
    });
}

function settings(): readonly string[] {
  return [
    hostname(),
    ...SETTINGS.map((name) => {
      try {
        return readFileSync(`/proc/sys/kernel/${name}`, "utf8");
      } catch {
        return "";
      }
    }),
  ];
}

async function listening(listen: (server: Server) => void): Promise<Server> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).once("listening", resolve);
    listen(server);
  });
  return server;
}
