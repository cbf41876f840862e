import type { Execs, Files, Sandboxes } from "../aido.ts";
import type { History } from "../history.ts";
import type {
  CreateSandbox,
  ExecInfo,
  ExecRequest,
  FileInfo,
  OutputChunk,
  SandboxInfo,
} from "../protocol/index.ts";
import { runExec } from "../run-exec.ts";
import type { PortReply } from "../schemas/index.ts";
import { concat } from "./bytes.ts";
import { HttpExecs } from "./http-execs.ts";
import { HttpFiles } from "./http-files.ts";
import { HttpHistory } from "./http-history.ts";
import { HttpSandboxes } from "./http-sandboxes.ts";
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
  readonly history: History;
  readonly #sandboxes: Sandboxes;
  readonly #execs: Execs;
  readonly #transport: Transport;

  private constructor(id: string, transport: Transport) {
    this.id = id;
    this.#transport = transport;
    this.#sandboxes = new HttpSandboxes(transport);
    this.#execs = new HttpExecs(transport);
    this.files = new SandboxFiles(id, new HttpFiles(transport));
    this.history = new HttpHistory(transport);
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

/** A command that runs: read it, write to it, wait for it, end it. Losing the connection does not end it. */
export class RunningCommand implements AsyncIterable<OutputChunk> {
  readonly id: string;
  readonly #sandbox: string;
  readonly #execs: Execs;

  constructor(sandbox: string, id: string, execs: Execs) {
    this.id = id;
    this.#sandbox = sandbox;
    this.#execs = execs;
  }

  [Symbol.asyncIterator](): AsyncIterator<OutputChunk> {
    return this.#execs.output(this.#sandbox, this.id, { follow: true })[Symbol.asyncIterator]();
  }

  wait(signal?: AbortSignal): Promise<ExecInfo> {
    return this.#execs.wait(this.#sandbox, this.id, signal);
  }

  write(data: string | Uint8Array): Promise<void> {
    const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
    return this.#execs.writeStdin(this.#sandbox, this.id, bytes);
  }

  closeStdin(): Promise<void> {
    return this.#execs.closeStdin(this.#sandbox, this.id);
  }

  kill(options: { signal?: string; graceMs?: number } = {}): Promise<void> {
    return this.#execs.kill(this.#sandbox, this.id, options);
  }
}

/** Files of one sandbox, with text for convenience. */
export class SandboxFiles {
  readonly #sandbox: string;
  readonly #files: Files;

  constructor(sandbox: string, files: Files) {
    this.#sandbox = sandbox;
    this.#files = files;
  }

  async read(path: string): Promise<Uint8Array> {
    return concat(this.#files.read(this.#sandbox, path));
  }

  async readText(path: string): Promise<string> {
    return new TextDecoder().decode(await this.read(path));
  }

  write(path: string, content: string | Uint8Array, options: { mode?: number } = {}): Promise<void> {
    const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
    return this.#files.write(this.#sandbox, path, bytes, options);
  }

  list(path = ".", options: { recursive?: boolean } = {}): Promise<readonly FileInfo[]> {
    return this.#files.list(this.#sandbox, path, options);
  }

  stat(path: string): Promise<FileInfo> {
    return this.#files.stat(this.#sandbox, path);
  }

  move(from: string, to: string): Promise<void> {
    return this.#files.move(this.#sandbox, from, to);
  }

  remove(path: string): Promise<void> {
    return this.#files.remove(this.#sandbox, path);
  }

  mkdir(path: string): Promise<void> {
    return this.#files.mkdir(this.#sandbox, path);
  }

  watch(path = ".", signal?: AbortSignal) {
    return this.#files.watch(this.#sandbox, path, signal);
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
