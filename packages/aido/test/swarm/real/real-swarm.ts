import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { GitBed } from "../../../src/core/swarm/testing/git-bed.ts";
import { type Json, storyJson, taskFileText } from "../../../src/core/swarm/testing/task-file-text.ts";
import { statusesOf } from "../../../src/swarm-adapter/testing/adapter-bed.ts";
import {
  type ForgeServer,
  type GitServer,
  startForge,
  startGitServer,
} from "../../../src/swarm-adapter/testing/git-server.ts";
import { docker } from "../../backends/docker-cli.ts";
import { AidoProcess, type Outcome } from "../../e2e/aido-process.ts";
import { KEYS } from "../images-bed.ts";
import { type Script, type ScriptedModel, startModel } from "./scripted-model.ts";

export const IMAGE = "aido-test:swarm-worker";

export interface RealSwarmOptions {
  /** Of each task file, by its short name. */
  readonly tasks: Readonly<Record<string, readonly Json[]>>;
  readonly files?: Readonly<Record<string, string>>;
  /** Task files are in the user's checkout alone. */
  readonly isUncommitted?: boolean;
  readonly script?: Script;
  readonly image?: string;
  /** Further variables of the user, passed on to workers. */
  readonly env?: Readonly<Record<string, string>>;
  /** Of the engine; the machine's own when undefined. */
  readonly host?: string;
}

export interface Entry {
  readonly containerId: string;
  readonly containerName: string;
  readonly status: string;
  readonly prUrl: string | null;
  readonly storyProgress: Readonly<Record<string, number>>;
}

/**
 * All that a swarm meets, on this machine: a project of a user, its origin behind https, a forge, a model's API. Workers reach
 * them at the engine's bridge. Disposing ends and removes the swarm with the product's own commands, and fails when that leaves
 * anything.
 */
export class RealSwarm implements AsyncDisposable {
  readonly git: GitBed;
  readonly forge: ForgeServer;
  readonly model: ScriptedModel;
  readonly #server: GitServer;
  readonly #suffix: string;
  #image: string;
  readonly #env: Readonly<Record<string, string>>;
  readonly #host: string | undefined;

  private constructor(
    parts: { git: GitBed; forge: ForgeServer; model: ScriptedModel; server: GitServer; suffix: string },
    { image, host, env }: RealSwarmOptions,
  ) {
    this.git = parts.git;
    this.forge = parts.forge;
    this.model = parts.model;
    this.#server = parts.server;
    this.#suffix = parts.suffix;
    this.#image = image ?? IMAGE;
    this.#env = { GIT_SSL_NO_VERIFY: "true", ...env };
    this.#host = host;
  }

  static async make(options: RealSwarmOptions): Promise<RealSwarm> {
    const suffix = `${process.pid}x${randomBytes(3).toString("hex")}`;
    const tasks = Object.entries(options.tasks).map(([name, stories]) => [
      taskPath(name, suffix),
      taskFileText(stories, { metadata: { title: `The ${name}`, branchName: `feat/${name}` } }),
    ]);
    const committed = options.isUncommitted ? [] : tasks;
    const git = new GitBed({ "README.md": "shop\n", ...Object.fromEntries(committed), ...options.files });
    mkdirSync(join(git.project, ".aimi/tasks"), { recursive: true });
    for (const [path = "", text = ""] of tasks) writeFileSync(join(git.project, path), text);
    const root = join(git.directory, "remote");
    mkdirSync(join(root, "team"), { recursive: true });
    symlinkSync(git.origin, join(root, "team/shop.git"));
    const address = hostAddress();
    const server = await startGitServer(root, KEYS.GITHUB_TOKEN, address);
    git.user("remote", "set-url", "origin", `${server.origin}/team/shop.git`);
    const model = await startModel(address, options.script ?? (() => ({ text: "Nothing to do." })));
    const forge = await startForge(
      ({ method, body }) =>
        method === "GET" ? { status: 200, body: [] } : { status: 201, body: { html_url: pullOf(body) } },
      address,
    );
    return new RealSwarm({ git, forge, model, server, suffix }, options);
  }

  worker(name: string): string {
    return `aimi-swarm-${name}-${this.#suffix}`;
  }

  taskFile(name: string): string {
    return taskPath(name, this.#suffix);
  }

  /** What a user has set, and nothing else. */
  get env(): Record<string, string> {
    return {
      ...this.git.env,
      ...KEYS,
      ANTHROPIC_BASE_URL: this.model.url,
      GITHUB_API_URL: this.forge.url,
      ...this.#env,
      ...(this.#host === undefined ? {} : { DOCKER_HOST: this.#host }),
    };
  }

  /** An image whose workspace has the project's `.aimi`, as a project's own image has. */
  async bringSettings(): Promise<AsyncDisposable> {
    const image = `${IMAGE}-${this.#suffix}`;
    const packed = execFileSync("tar", ["-C", this.git.project, "-cz", ".aimi/tasks"]).toString("base64");
    const input = `FROM ${IMAGE}\nRUN mkdir -p node_modules/dep && echo dep > node_modules/dep/index.js && echo ${packed} | base64 -d | tar xz\n`;
    await docker(["build", "-q", "--network", "none", "-t", image, "-"], { input });
    this.#image = image;
    return {
      [Symbol.asyncDispose]: async () => {
        await docker(["rmi", image]);
      },
    };
  }

  /** The options of every run; behind them come those of the test. */
  get options(): readonly string[] {
    const names = Object.keys(this.#env).flatMap((name) => ["--env", name]);
    return ["--isolation", "container", "--image", this.#image, ...names];
  }

  start(...argv: string[]): AidoProcess {
    const started = new AidoProcess(argv, { cwd: this.git.project, env: this.env });
    started.child.stdin.end();
    return started;
  }

  async aido(...argv: string[]): Promise<Outcome> {
    await using running = this.start(...argv);
    return await running.end();
  }

  read(path: string): string {
    return readFileSync(join(this.git.project, path), "utf8");
  }

  entry(name: string): Entry | undefined {
    const state = JSON.parse(this.read(".aimi/swarm-state.json")) as { containers: Entry[] };
    return state.containers.find(({ containerName }) => containerName === this.worker(name));
  }

  statuses(...names: string[]): (string | undefined)[] {
    return names.map((name) => this.entry(name)?.status);
  }

  /** A file of a worker's branch at origin. */
  atOrigin(name: string, path: string): string {
    return this.git.git(this.git.origin, "show", `feat/${name}:${path}`);
  }

  /** Of the commits that a worker pushed, the oldest first. */
  subjects(name: string): string[] {
    const text = this.git.git(this.git.origin, "log", "--reverse", "--format=%s", `main..feat/${name}`);
    return text.trim().split("\n");
  }

  storiesAtOrigin(name: string): Record<string, string> {
    return statusesOf(this.atOrigin(name, this.taskFile(name)));
  }

  async docker(...args: string[]): Promise<string> {
    return await docker(args, this.#host === undefined ? {} : { host: this.#host });
  }

  async containers(): Promise<string[]> {
    const names = await this.docker("ps", "-a", "--filter", `name=${this.#suffix}`, "--format", "{{.Names}}");
    return names.split("\n").filter((name) => name !== "");
  }

  async networks(): Promise<string[]> {
    const names = await this.docker(
      "network",
      "ls",
      "--filter",
      `name=${this.#suffix}`,
      "--format",
      "{{.Name}}",
    );
    return names.split("\n").filter((name) => name !== "");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ends = [await this.aido("swarm", "stop", "--grace", "1s"), await this.aido("swarm", "cleanup")];
    const left = { containers: await this.containers(), networks: await this.networks() };
    for (const name of left.containers) await this.docker("rm", "--force", name);
    for (const name of left.networks) await this.docker("network", "rm", name);
    await this.#server[Symbol.asyncDispose]();
    await this.model[Symbol.asyncDispose]();
    await this.forge[Symbol.asyncDispose]();
    this.git[Symbol.dispose]();
    expect({ ...left, said: ends.map(({ stderr }) => stderr) }).toMatchObject({
      containers: [],
      networks: [],
    });
  }
}

/** Containers reach the machine at any of its addresses; the bridge's is not to be seen from elsewhere. */
function hostAddress(): string {
  const { docker0 = [], ...others } = networkInterfaces();
  const found = [docker0, ...Object.values(others)]
    .flat()
    .find((one) => one?.family === "IPv4" && !one.internal);
  if (found === undefined) throw new Error("this machine has no address that containers reach");
  return found.address;
}

const taskPath = (name: string, suffix: string) => `.aimi/tasks/2026-01-05-${name}-${suffix}-tasks.json`;

export const pullOf = (body: unknown) =>
  `https://forge.test/team/shop/pull/${(body as { head: string }).head.replace("feat/", "")}`;

/** Two stories, the second of which needs the first. */
export const twoStories = (changes: Json = {}): readonly Json[] => [
  storyJson("US-001"),
  storyJson("US-002", { dependsOn: ["US-001"], ...changes }),
];
