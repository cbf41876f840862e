import type { Execs, Sandboxes } from "../aido.ts";
import type { CreateSandbox, ExecInfo, ExecRequest, SandboxInfo } from "../protocol/index.ts";
import { runExec } from "../run-exec.ts";
import type { PortReply } from "../schemas/index.ts";
import { HttpExecs } from "./http-execs.ts";
import { HttpFiles } from "./http-files.ts";
import { HttpHistory } from "./http-history.ts";
import { HttpSandboxes } from "./http-sandboxes.ts";
import { RunningCommand } from "./running-command.ts";
import { SandboxFiles } from "./sandbox-files.ts";
import { SandboxHistory } from "./sandbox-history.ts";
import { Transport, type TransportOptions } from "./transport.ts";

export interface ConnectOptions extends Omit<TransportOptions, "url"> {
  /** By default AIDO_URL of the environment, or else `http://127.0.0.1:3000`; the key likewise AIDO_API_KEY. */
  url?: string | undefined;
}

export interface ExecResult {
  info: ExecInfo;
  exitCode: number | undefined;
  stdout: string;
  stderr: string;
}

type ExecOptions = Omit<ExecRequest, "argv"> & { signal?: AbortSignal };
const DEFAULT_URL = "http://127.0.0.1:3000";

/** One sandbox on a server: `await using sbx = await Sandbox.create({ image: "python" })`. */
export class Sandbox implements AsyncDisposable {
  readonly id: string;
  readonly files: SandboxFiles;
  readonly history: SandboxHistory;
  readonly #sandboxes: Sandboxes;
  readonly #execs: Execs;
  readonly #transport: Transport;

  private constructor(id: string, transport: Transport) {
    this.id = id;
    this.#transport = transport;
    this.#sandboxes = new HttpSandboxes(transport);
    this.#execs = new HttpExecs(transport);
    this.files = new SandboxFiles(id, new HttpFiles(transport));
    this.history = new SandboxHistory(id, new HttpHistory(transport));
  }

  static async create(
    request: CreateSandbox = {},
    options: ConnectOptions & { signal?: AbortSignal } = {},
  ): Promise<Sandbox> {
    const { signal, ...connect } = options;
    const transport = connection(connect);
    const { id } = await new HttpSandboxes(transport).create(request, signal && { signal });
    return new Sandbox(id, transport);
  }

  /** A sandbox that is there already, by id or name. */
  static async connect(reference: string, options: ConnectOptions = {}): Promise<Sandbox> {
    const transport = connection(options);
    const { id } = await new HttpSandboxes(transport).get(reference);
    return new Sandbox(id, transport);
  }

  /** Runs to the end. A string is given to `sh -c`, an array is run as it is. */
  async exec(command: string | readonly string[], options: ExecOptions = {}): Promise<ExecResult> {
    const { signal, ...request } = options;
    const limit = signal === undefined ? {} : { signal };
    const done = await runExec(this.#execs, this.id, { ...request, argv: toArgv(command) }, limit);
    const decoder = new TextDecoder();
    return {
      info: done.info,
      exitCode: done.info.exitCode,
      stdout: decoder.decode(done.stdout),
      stderr: decoder.decode(done.stderr),
    };
  }

  /** Starts a command; `for await (const chunk of command)` reads its output as it comes. */
  async start(command: string | readonly string[], options: ExecOptions = {}): Promise<RunningCommand> {
    const { signal, ...request } = options;
    const info = await this.#execs.start(this.id, { ...request, argv: toArgv(command) }, signal);
    return new RunningCommand(this.id, info.id, this.#execs);
  }

  /** A command that was started earlier, maybe by another program. */
  attach(execId: string): RunningCommand {
    return new RunningCommand(this.id, execId, this.#execs);
  }

  info(): Promise<SandboxInfo> {
    return this.#sandboxes.get(this.id);
  }

  stop(): Promise<SandboxInfo> {
    return this.#sandboxes.stop(this.id);
  }

  resume(): Promise<SandboxInfo> {
    return this.#sandboxes.start(this.id);
  }

  /** Where a port inside the sandbox is reached, over HTTP and WebSocket. Whoever has the address may use the port. */
  async getUrl(port: number): Promise<string> {
    const path = `/api/sandbox/${encodeURIComponent(this.id)}/ports/${port}`;
    const reply = await this.#transport.json<PortReply>(path, { method: "POST", repeatable: true });
    return this.#transport.url + reply.path;
  }

  setTtl(ttlMs: number): Promise<SandboxInfo> {
    return this.#sandboxes.setTtl(this.id, ttlMs);
  }

  async destroy(): Promise<void> {
    await this.#sandboxes.destroy(this.id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.destroy();
  }
}

function toArgv(command: string | readonly string[]): readonly string[] {
  return typeof command === "string" ? ["sh", "-c", command] : command;
}

function connection(options: ConnectOptions): Transport {
  const env = (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env ?? {};
  const url = options.url ?? env["AIDO_URL"] ?? DEFAULT_URL;
  return new Transport({ ...options, url, apiKey: options.apiKey ?? env["AIDO_API_KEY"] });
}
