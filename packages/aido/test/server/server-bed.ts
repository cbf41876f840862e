import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WebSocket } from "ws";
import { MAIN } from "../e2e/aido-process.ts";

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a reply's body is whatever the test expects it to be
  readonly json: any;
}

export interface ServerBedOptions {
  driver: "local" | "docker";
  env?: Readonly<Record<string, string>>;
  /** A data directory of the test's own, which it removes itself. */
  dataDir?: string;
}

const START_LIMIT_MS = 20_000;

/** The built `aido serve` in a process of its own, with a data directory of its own. Disposing removes every sandbox. */
export class ServerBed implements AsyncDisposable {
  readonly driver: "local" | "docker";
  readonly directory: string;
  readonly dataDir: string;
  readonly #env: Readonly<Record<string, string>>;
  #child: ChildProcess | undefined;
  #stderr = "";
  #url = "";

  private constructor(options: ServerBedOptions) {
    this.driver = options.driver;
    this.directory = mkdtempSync(join(tmpdir(), "aido-server-"));
    this.dataDir = options.dataDir ?? join(this.directory, "data");
    this.#env = options.env ?? {};
  }

  static async start(options: ServerBedOptions): Promise<ServerBed> {
    const bed = new ServerBed(options);
    try {
      await bed.start();
    } catch (thrown) {
      bed.#child?.kill("SIGKILL");
      rmSync(bed.directory, { recursive: true, force: true });
      throw thrown;
    }
    return bed;
  }

  /** What a sandbox of this driver is made from. */
  get image(): string {
    return this.driver === "docker" ? "aido-test:python" : "host";
  }

  get url(): string {
    return this.#url;
  }

  get stderr(): string {
    return this.#stderr;
  }

  get child(): ChildProcess {
    if (this.#child === undefined) throw new Error("the server is not running");
    return this.#child;
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** Resident memory in bytes. */
  rss(): number {
    const pages = readFileSync(`/proc/${this.pid}/statm`, "utf8").split(" ")[1];
    return Number(pages) * 4096;
  }

  async start(): Promise<void> {
    const { PATH, HOME, DOCKER_HOST } = process.env;
    this.#stderr = "";
    const child = spawn(process.execPath, [MAIN, ...this.#flags(), "serve", "--port", "0"], {
      cwd: this.directory,
      env: { PATH, HOME, ...(DOCKER_HOST && { DOCKER_HOST }), ...this.#env },
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.#child = child;
    child.stderr?.on("data", (chunk: Buffer) => {
      this.#stderr += chunk.toString();
    });
    const end = Date.now() + START_LIMIT_MS;
    for (;;) {
      const url = /^\S+.* on (http:\S+)/m.exec(this.#stderr)?.[1];
      if (url !== undefined) {
        this.#url = url;
        return;
      }
      if (child.exitCode !== null || Date.now() > end) {
        throw new Error(`the server did not start: exit ${child.exitCode}\n${this.#stderr}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  async signal(signal: NodeJS.Signals): Promise<void> {
    const { child } = this;
    const closed = once(child, "exit");
    child.kill(signal);
    await closed;
  }

  /** As a machine that loses power would: nothing is said or written any more. */
  kill(): Promise<void> {
    return this.signal("SIGKILL");
  }

  fetch(path: string, init: RequestInit = {}): Promise<Response> {
    return fetch(`${this.#url}${path}`, init);
  }

  async call(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const response = await this.fetch(path, {
      method,
      headers: { ...(body !== undefined && { "content-type": "application/json" }), ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: isJson && text !== "" ? JSON.parse(text) : undefined,
    };
  }

  get(path: string): Promise<Answer> {
    return this.call("GET", path);
  }

  post(path: string, body: unknown): Promise<Answer> {
    return this.call("POST", path, body);
  }

  async sandbox(body: object = {}): Promise<string> {
    const reply = await this.post("/api/sandbox", { image: this.image, ...body });
    if (reply.status !== 201) throw new Error(`no sandbox: ${reply.status} ${reply.text}\n${this.#stderr}`);
    return reply.json.containerId;
  }

  exec(containerId: string, command: readonly string[], more: object = {}): Promise<Answer> {
    return this.post("/api/sandbox/exec", { containerId, command, ...more });
  }

  sh(containerId: string, script: string, more: object = {}): Promise<Answer> {
    return this.exec(containerId, ["sh", "-c", script], more);
  }

  socket(path: string): WebSocket {
    return new WebSocket(`${this.#url.replace("http:", "ws:")}${path}`);
  }

  /** Runs another aido command on the same data directory to its end. */
  async aido(...argv: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
    const { PATH, HOME, DOCKER_HOST } = process.env;
    const child = spawn(process.execPath, [MAIN, ...this.#flags(), ...argv], {
      cwd: this.directory,
      env: { PATH, HOME, ...(DOCKER_HOST && { DOCKER_HOST }) },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const text = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const) {
      child[name].on("data", (chunk: Buffer) => {
        text[name] += chunk.toString();
      });
    }
    const [code] = (await once(child, "close")) as [number | null];
    return { code, ...text };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const child = this.#child;
    if (child !== undefined && child.exitCode === null && child.signalCode === null) await this.kill();
    try {
      if (!existsSync(this.dataDir)) return;
      const removed = await this.aido("rm", "--all");
      if (removed.code !== 0) throw new Error(`sandboxes are left: ${removed.stderr}`);
    } finally {
      rmSync(this.directory, { recursive: true, force: true });
    }
  }

  #flags(): string[] {
    return ["--driver", this.driver, "--data-dir", this.dataDir];
  }
}

/** Waits until something is so; fails with `what` when it is not within the time. */
export async function until(
  what: string,
  isSo: () => boolean | Promise<boolean>,
  limitMs = 30_000,
): Promise<void> {
  const end = Date.now() + limitMs;
  while (!(await isSo())) {
    if (Date.now() > end) throw new Error(`not within ${limitMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
