import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AidoProcess } from "./aido-process.ts";

/** `aido serve` with one driver on a data directory of its own. Disposing ends all that runs on it. */
export class AidoServer implements AsyncDisposable {
  readonly #directory: string;
  readonly #driver: string;
  readonly #env: Readonly<Record<string, string>>;
  #process: AidoProcess | undefined;
  #url = "";

  private constructor(directory: string, driver: string, env: Readonly<Record<string, string>>) {
    this.#directory = directory;
    this.#driver = driver;
    this.#env = env;
  }

  /** With settings as variables, besides. */
  static async start(driver = "local", env: Readonly<Record<string, string>> = {}): Promise<AidoServer> {
    const server = new AidoServer(await mkdtemp(join(tmpdir(), "aido-served-")), driver, env);
    try {
      await server.#serve("0");
      return server;
    } catch (thrown) {
      await server[Symbol.asyncDispose]();
      throw thrown;
    }
  }

  get url(): string {
    return this.#url;
  }

  get port(): number {
    return Number(new URL(this.#url).port);
  }

  /** At once and without a word, as when the machine runs out of memory. */
  async kill(): Promise<void> {
    await this.#process?.[Symbol.asyncDispose]();
  }

  /** In order, as when a new version is installed. */
  async stop(): Promise<void> {
    this.#process?.child.kill("SIGTERM");
    await this.#process?.end();
  }

  /** Again, on the same data and the same port. */
  async restart(): Promise<void> {
    await this.#serve(String(this.port));
  }

  /** A command on the server's own machine. */
  async local(...argv: string[]): Promise<string> {
    await using running = this.#run(argv);
    running.child.stdin.end();
    const outcome = await running.end();
    if (outcome.code === 0) return outcome.stdout;
    throw new Error(`aido ${argv.join(" ")}: exit ${outcome.code}\n${outcome.stderr}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await this.local("rm", "--all");
    await rm(this.#directory, { recursive: true, force: true });
  }

  async #serve(port: string): Promise<void> {
    this.#process = this.#run(["serve", "--port", port]);
    await this.#process.until("with the driver", "stderr");
    this.#url = / on (http:\S+) with/.exec(this.#process.stderr)?.[1] ?? "";
  }

  #run(argv: readonly string[]): AidoProcess {
    const { PATH, HOME } = process.env;
    const data = join(this.#directory, "data");
    return new AidoProcess(["--driver", this.#driver, "--data-dir", data, ...argv], {
      cwd: this.#directory,
      env: { PATH, HOME, ...this.#env },
    });
  }
}
