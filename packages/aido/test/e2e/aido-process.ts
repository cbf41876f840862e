import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";

/** The built command line: what users run. `npm run build` makes it. */
export const MAIN = new URL("../../dist/bundle/main.cjs", import.meta.url).pathname;
const DEADLINE_MS = 60_000;

export interface Outcome {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
  bytes: Buffer;
}

/** One running `aido`. Disposing kills it if it still runs. */
export class AidoProcess implements AsyncDisposable {
  readonly child: ChildProcessWithoutNullStreams;
  readonly #stdout: Buffer[] = [];
  readonly #stderr: Buffer[] = [];
  readonly #closed: Promise<[number | null, NodeJS.Signals | null]>;

  constructor(argv: readonly string[], options: { cwd: string; env: NodeJS.ProcessEnv }) {
    this.child = spawn(process.execPath, [MAIN, ...argv], { ...options, stdio: "pipe" });
    this.child.stdout.on("data", (chunk: Buffer) => this.#stdout.push(chunk));
    this.child.stderr.on("data", (chunk: Buffer) => this.#stderr.push(chunk));
    // A command that ends before it has read its input closes it; that is the command's business.
    this.child.stdin.on("error", () => undefined);
    this.#closed = once(this.child, "close") as Promise<[number | null, NodeJS.Signals | null]>;
  }

  get stdout(): string {
    return Buffer.concat(this.#stdout).toString();
  }

  get stderr(): string {
    return Buffer.concat(this.#stderr).toString();
  }

  /** Resolves when the output holds the text; rejects when the process ends first or the time is up. */
  async until(text: string, stream: "stdout" | "stderr" = "stdout"): Promise<void> {
    const end = Date.now() + DEADLINE_MS;
    while (!this[stream].includes(text)) {
      if (this.child.exitCode !== null || this.child.signalCode !== null || Date.now() > end) {
        throw new Error(`No ${JSON.stringify(text)} in ${stream}:\n${this.stdout}\n${this.stderr}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async end(): Promise<Outcome> {
    const timer = setTimeout(() => this.child.kill("SIGKILL"), DEADLINE_MS);
    const [code, signal] = await this.#closed;
    clearTimeout(timer);
    return { code, signal, stdout: this.stdout, stderr: this.stderr, bytes: Buffer.concat(this.#stdout) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill("SIGKILL");
    await this.#closed;
  }
}
