import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { AgentClient } from "./agent-client.ts";

const AGENT_DIRECTORY = dirname(dirname(fileURLToPath(import.meta.url)));

/** The binary under test; AIDO_TEST_AGENT names another, such as the one with sanitizers. */
export const AGENT_BINARY = process.env["AIDO_TEST_AGENT"] ?? join(AGENT_DIRECTORY, "build/aido-agent");
export const IS_SANITIZED = process.env["AIDO_TEST_AGENT"]?.includes("asan") ?? false;

/** A field of a process's status that is so many KiB. */
export async function statusKiB(pid: number, field: string): Promise<number> {
  const line = (await readFile(`/proc/${pid}/status`, "utf8"))
    .split("\n")
    .find((each) => each.startsWith(field));
  return Number(/\d+/.exec(line ?? "")?.[0]);
}

export interface StartOptions {
  /** In a pid namespace of its own, where it is pid 1. */
  readonly asInit?: boolean;
  /** What /proc it then has: its own, none, or that of the machine, whose pids are not its own. */
  readonly proc?: "own" | "none" | "foreign";
  readonly arguments?: readonly string[];
  /** Started with these ignored, as by a shell's trap. */
  readonly ignoring?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

const UNSHARE = {
  own: ["unshare", "-pf", "--kill-child", "--mount-proc"],
  none: ["unshare", "-mpf", "--kill-child", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"],
  foreign: ["unshare", "-pf", "--kill-child"],
};

/** A supervisor as an ordinary process with a directory of its own; disposing kills it and all below it. */
export class AgentProcess implements AsyncDisposable {
  readonly directory: string;
  readonly token = randomBytes(32);
  readonly #child: ChildProcess;
  readonly #exit: Promise<number | string>;
  readonly #clients: AgentClient[] = [];
  #stderr = "";

  private constructor(directory: string, child: ChildProcess) {
    this.directory = directory;
    this.#child = child;
    child.stderr?.on("data", (bytes: Buffer) => {
      this.#stderr += bytes.toString();
    });
    this.#exit = new Promise((resolve) => {
      child.once("exit", (code, signal) => resolve(code ?? signal ?? "unknown"));
      child.once("error", (error) => resolve(error.message));
    });
  }

  static async start(options: StartOptions = {}): Promise<AgentProcess> {
    const directory = await mkdtemp(join(tmpdir(), "aido-agent-test-"));
    const socket = join(directory, "agent.sock");
    const command = [AGENT_BINARY, "supervise", "--socket", socket, ...(options.arguments ?? [])];
    const { ignoring = [] } = options;
    const deaf = ignoring.length > 0 ? ["sh", "-c", `trap '' ${ignoring.join(" ")}; exec "$@"`, "sh"] : [];
    const argv = [...deaf, ...(options.asInit ? UNSHARE[options.proc ?? "own"] : []), ...command];
    const [file = "", ...rest] = argv;
    const env = { ...process.env, ...options.env };
    const started = new AgentProcess(
      directory,
      spawn(file, rest, { stdio: ["ignore", "ignore", "pipe"], env }),
    );
    try {
      await started.poll(() => existsSync(socket), "the socket");
    } catch (error) {
      await started[Symbol.asyncDispose]();
      throw error;
    }
    return started;
  }

  get socket(): string {
    return join(this.directory, "agent.sock");
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** The supervisor's own process as this machine numbers it. */
  async pid(): Promise<number> {
    const pid = this.#child.pid ?? 0;
    if ((await readFile(`/proc/${pid}/comm`, "utf8")).trim() !== "unshare") return pid;
    const child = (await descendants(pid))[0];
    if (child === undefined) throw new Error("unshare has no child");
    return child;
  }

  async connect(): Promise<AgentClient> {
    const client = await AgentClient.open(this.socket);
    this.#clients.push(client);
    return client;
  }

  /** A connection that has said hello and configured a user to run as. */
  async open(workdir = this.directory): Promise<AgentClient> {
    const client = await this.connect();
    const { claimed } = await client.hello(this.token);
    if (claimed === 0) await client.configure({ uid: 0, gid: 0, workdir });
    return client;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async exit(): Promise<number | string> {
    return Promise.race([this.#exit, new Promise<never>((_, reject) => deadline(reject))]);
  }

  async poll(look: () => boolean | Promise<boolean>, what: string): Promise<void> {
    const end = Date.now() + 20_000;
    while (!(await look())) {
      if (this.#child.exitCode !== null)
        throw new Error(`The supervisor exited before ${what}: ${this.#stderr}`);
      if (Date.now() > end) throw new Error(`Not within 20 s: ${what}. ${this.#stderr}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) client[Symbol.dispose]();
    const pid = this.#child.pid;
    if (this.#child.exitCode === null && this.#child.signalCode === null && pid !== undefined) {
      const below = await descendants(pid);
      this.#child.kill("SIGKILL");
      await this.#exit;
      for (const each of below) {
        try {
          process.kill(each, "SIGKILL");
        } catch {
          // It had ended by itself.
        }
      }
    }
    await rm(this.directory, { recursive: true, force: true });
    if (this.#stderr.includes("Sanitizer") || this.#stderr.includes("runtime error"))
      throw new Error(this.#stderr);
  }
}

function deadline(reject: (error: Error) => void): void {
  setTimeout(() => reject(new Error("The supervisor did not exit within 20 s")), 20_000).unref();
}

/** What waits below a supervisor for the next command. */
const SPARE = "aido-spare";

/** Every process below one but spares, children before grandchildren. */
export async function descendants(root: number): Promise<number[]> {
  const parents = new Map<number, number>();
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const stat = await readFile(`/proc/${name}/stat`, "utf8").catch(() => "");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (stat.includes(`(${SPARE})`) || fields[1] === undefined || fields[0] === "Z") continue;
    parents.set(Number(name), Number(fields[1]));
  }
  const found: number[] = [root];
  for (const each of found) for (const [pid, parent] of parents) if (parent === each) found.push(pid);
  return found.slice(1);
}

/** A process is alive when it exists and is not only waiting to be reaped. */
export async function isAlive(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  return stat !== "" && stat.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3) !== "Z";
}

/** The process that waits for a supervisor's next command; undefined when there is none for now. */
export async function spareOf(supervisor: number): Promise<number | undefined> {
  const children = await readFile(`/proc/${supervisor}/task/${supervisor}/children`, "utf8").catch(() => "");
  for (const pid of children.split(" ").filter((each) => each !== "")) {
    if ((await readFile(`/proc/${pid}/comm`, "utf8").catch(() => "")) === `${SPARE}\n`) return Number(pid);
  }
  return undefined;
}
