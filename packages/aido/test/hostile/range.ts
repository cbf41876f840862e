import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CreateSandbox, ExecInfo, ExecRequest } from "@aido/sdk/protocol";
import { expect } from "vitest";
import { openAido } from "../../src/compose.ts";
import { loadConfig } from "../../src/config/load-config.ts";
import type { CoreAido } from "../../src/core/core-aido.ts";
import { StreamLogger } from "../../src/log/stream-logger.ts";
import { agentPath } from "../backends/agent-path.ts";
import { Canaries, marked } from "./canaries.ts";

export const DRIVERS = ["docker", "local"] as const;
export type DriverName = (typeof DRIVERS)[number];

const IMAGES = { docker: "aido-test:python", local: "python" } as const;
/** Nothing here takes this long; it bounds what hangs. */
const LIMIT_MS = 60_000;
const MAX_READ = 1024 * 1024;

export interface Attacked {
  readonly info: ExecInfo;
  readonly stdout: string;
  readonly stderr: string;
}

/** Where attacks are tried: aido on a data directory of its own, and canaries around it. */
export class Range implements AsyncDisposable {
  readonly driver: DriverName;
  readonly canaries: Canaries;
  readonly root: string;
  readonly aido: CoreAido;
  readonly #open: () => Promise<CoreAido>;
  readonly #opened: CoreAido[];

  private constructor(
    parts: Pick<Range, "driver" | "canaries" | "root" | "aido"> & { open: () => Promise<CoreAido> },
    opened: CoreAido[],
  ) {
    this.driver = parts.driver;
    this.canaries = parts.canaries;
    this.root = parts.root;
    this.aido = parts.aido;
    this.#open = parts.open;
    this.#opened = opened;
  }

  static async open(driver: DriverName): Promise<Range> {
    const root = await mkdtemp(join(tmpdir(), "aido-hostile-"));
    const opened: CoreAido[] = [];
    const { config } = loadConfig({
      env: {
        XDG_CONFIG_HOME: "/nowhere",
        DOCKER_HOST: process.env["DOCKER_HOST"],
        PATH: process.env["PATH"],
      },
      cwd: root,
      flags: { driver, dataDir: join(root, "data"), defaultImage: IMAGES[driver], agentPath: agentPath() },
    });
    const logger = new StreamLogger({
      level: "silent",
      format: "json",
      write: () => undefined,
      now: () => new Date(),
    });
    const open = async () => {
      const aido = await openAido({ config, logger });
      opened.push(aido);
      return aido;
    };
    const aido = await open();
    return new Range({ driver, canaries: await Canaries.make(), root, aido, open }, opened);
  }

  /** Another process's view of the same data directory. */
  async another(): Promise<CoreAido> {
    return await this.#open();
  }

  get image(): string {
    return IMAGES[this.driver];
  }

  /** A sandbox for one attack. Disposing destroys it and sees that nothing of it is left and the host is as it was. */
  async sandbox(request: CreateSandbox = {}): Promise<Target> {
    const mark = `AIDO_HOSTILE_${randomBytes(8).toString("hex")}`;
    const env = { ...request.env, [mark]: "1" };
    const { id } = await this.aido.sandboxes.create({ ttlMs: 120_000, ...request, env });
    return new Target(this, id, mark);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { id } of await this.aido.sandboxes.list()) await this.aido.sandboxes.destroy(id);
    for (const aido of this.#opened) await aido.close();
    await this.canaries[Symbol.asyncDispose]();
    await rm(this.root, { recursive: true, force: true });
  }
}

export class Target implements AsyncDisposable {
  readonly id: string;
  readonly mark: string;
  readonly range: Range;

  constructor(range: Range, id: string, mark: string) {
    this.range = range;
    this.id = id;
    this.mark = mark;
  }

  async start(script: string, request: Partial<ExecRequest> = {}): Promise<ExecInfo> {
    return await this.range.aido.execs.start(this.id, { argv: ["python3", "-c", script], ...request });
  }

  /** Starts Python inside and waits until it has said `word`. */
  async begun(script: string, word: string, request: Partial<ExecRequest> = {}): Promise<ExecInfo> {
    const exec = await this.start(script, request);
    let said = "";
    const signal = AbortSignal.timeout(LIMIT_MS);
    for await (const { data } of this.range.aido.execs.output(this.id, exec.id, { follow: true }, signal)) {
      said += Buffer.from(data).toString();
      if (said.includes(word)) return exec;
    }
    throw new Error(`It ended without saying ${word}: ${said}`);
  }

  async end(execId: string): Promise<Attacked> {
    const { execs } = this.range.aido;
    const info = await execs.wait(this.id, execId, AbortSignal.timeout(LIMIT_MS));
    const kept = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] };
    let bytes = 0;
    for await (const { stream, data } of execs.output(this.id, execId)) {
      bytes += data.length;
      if (bytes <= MAX_READ) kept[stream].push(data);
    }
    return { info, stdout: text(kept.stdout), stderr: text(kept.stderr) };
  }

  /** Runs Python inside to its end. */
  async attack(script: string, request: Partial<ExecRequest> = {}): Promise<Attacked> {
    return await this.end((await this.start(script, request)).id);
  }

  /** Commands, files and the driver's view still work. */
  async answers(): Promise<void> {
    const { aido } = this.range;
    const { info, stdout } = await this.attack("print('alive')", { timeoutMs: 30_000 });
    expect([info.exitCode, stdout]).toEqual([0, "alive\n"]);
    await aido.files.write(this.id, "alive", Buffer.from("alive"));
    expect(await this.read("alive")).toBe("alive");
    expect(await aido.sandboxes.get(this.id)).toMatchObject({ state: "running" });
  }

  async read(path: string): Promise<string> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of this.range.aido.files.read(this.id, path)) chunks.push(chunk);
    return text(chunks);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { aido, canaries, root } = this.range;
    await aido.sandboxes.destroy(this.id, AbortSignal.timeout(LIMIT_MS));
    expect(marked(this.mark)).toEqual([]);
    expect(await aido.driver.inspect(this.id)).toBeUndefined();
    expect(existsSync(join(root, "data", "sandboxes", this.id))).toBe(false);
    expect(await aido.evidence.verify(this.id)).toMatchObject([{ ok: true }]);
    await canaries.check();
  }
}

function text(chunks: readonly Uint8Array[]): string {
  return Buffer.concat(chunks).toString("utf8");
}
