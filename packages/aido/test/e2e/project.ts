import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { AidoProcess, type Outcome } from "./aido-process.ts";

export interface CallOptions {
  stdin?: string | Uint8Array;
  env?: NodeJS.ProcessEnv;
}

/** A directory of a user with a data directory of its own. Disposing destroys its sandboxes and removes it. */
export class Project implements AsyncDisposable {
  readonly directory: string;
  readonly driver: string;
  /** What comes before every command: which driver, or which server. */
  readonly globals: readonly string[];

  private constructor(directory: string, driver: string, globals: readonly string[]) {
    this.directory = directory;
    this.driver = driver;
    this.globals = globals;
  }

  static async make(driver = "local", files: Readonly<Record<string, string>> = {}): Promise<Project> {
    return Project.#fill(driver, ["--driver", driver], files);
  }

  /** Whose commands all go to a server that has the given driver. */
  static async on(
    url: string,
    files: Readonly<Record<string, string>> = {},
    driver = "local",
  ): Promise<Project> {
    return Project.#fill(driver, ["--server", url], files);
  }

  static async #fill(
    driver: string,
    globals: readonly string[],
    files: Readonly<Record<string, string>>,
  ): Promise<Project> {
    const project = new Project(await mkdtemp(join(tmpdir(), "aido-e2e-")), driver, globals);
    for (const [name, text] of Object.entries(files)) await project.write(name, text);
    return project;
  }

  async write(name: string, text: string): Promise<void> {
    await mkdir(dirname(this.path(name)), { recursive: true });
    await writeFile(this.path(name), text);
  }

  path(...parts: string[]): string {
    return join(this.directory, ...parts);
  }

  async read(...parts: string[]): Promise<string> {
    return readFile(this.path(...parts), "utf8");
  }

  async readJson(...parts: string[]): Promise<Record<string, unknown>> {
    return JSON.parse(await this.read(...parts)) as Record<string, unknown>;
  }

  /** Starts `aido` and leaves it running. */
  start(argv: readonly string[], options: CallOptions = {}): AidoProcess {
    const { PATH, HOME } = process.env;
    const env = { PATH, HOME, AIDO_DRIVER: undefined, ...options.env };
    return new AidoProcess([...this.globals, ...argv], { cwd: this.directory, env });
  }

  /** Runs `aido` to its end. */
  async aido(argv: readonly string[], options: CallOptions = {}): Promise<Outcome> {
    await using running = this.start(argv, options);
    running.child.stdin.end(options.stdin ?? "");
    return await running.end();
  }

  /** As `aido`, for what must succeed. */
  async ok(argv: readonly string[], options: CallOptions = {}): Promise<Outcome> {
    const outcome = await this.aido(argv, options);
    if (outcome.code === 0) return outcome;
    throw new Error(`aido ${argv.join(" ")}: exit ${outcome.code}\n${outcome.stdout}\n${outcome.stderr}`);
  }

  async json<Value = Record<string, unknown>>(
    argv: readonly string[],
    options: CallOptions = {},
  ): Promise<Value> {
    return JSON.parse((await this.ok([...argv, "--json"], options)).stdout) as Value;
  }

  /** A plain sandbox on the host's programs or the busybox test image; returns its id. */
  async create(...argv: string[]): Promise<string> {
    const image = this.driver === "docker" ? "aido-test:busybox" : "host";
    return (await this.ok(["create", "--image", image, "--ttl", "10m", "--quiet", ...argv])).stdout.trim();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.ok(["rm", "--all"]);
    await rm(this.directory, { recursive: true, force: true });
  }
}
