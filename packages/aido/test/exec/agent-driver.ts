import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type {
  CommittedImage,
  Container,
  ContainerSpec,
  ContainerUsage,
  Driver,
  DriverCapabilities,
} from "../../src/core/driver/driver.ts";
import { FakeImages } from "../../src/drivers/fake/fake-images.ts";

const AGENT = fileURLToPath(new URL("../../../../agent/build/aido-agent", import.meta.url));

/** The real supervisor as an ordinary process, without any sandbox around it. One at a time. */
export class AgentDriver implements Driver {
  readonly name = "agent";
  readonly images = new FakeImages([], () => false);
  readonly #directory: string;
  readonly #sockets = new Set<Socket>();
  #child: ChildProcess | undefined;
  #spec: ContainerSpec | undefined;

  private constructor(directory: string) {
    this.#directory = directory;
  }

  static async open(): Promise<AgentDriver> {
    return new AgentDriver(await mkdtemp(join(tmpdir(), "aido-agent-")));
  }

  get #socket(): string {
    return join(this.#directory, "agent.sock");
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  async capabilities(): Promise<DriverCapabilities> {
    throw new Error("not asked for");
  }

  async hasImage(): Promise<boolean> {
    return true;
  }

  standIn(): undefined {
    return undefined;
  }

  async ensureImage(): Promise<void> {}

  async create(spec: ContainerSpec): Promise<Container> {
    this.#spec = spec;
    return this.#info();
  }

  async start(): Promise<void> {
    const child = spawn(AGENT, ["supervise", "--socket", this.#socket], {
      stdio: ["ignore", "ignore", "inherit"],
    });
    this.#child = child;
    const end = Date.now() + 10_000;
    while (!existsSync(this.#socket)) {
      if (child.exitCode !== null || Date.now() > end) throw new Error("the supervisor did not start");
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  get isRunning(): boolean {
    return this.#child?.exitCode === null && this.#child.signalCode === null;
  }

  async ended(): Promise<void> {
    const child = this.#child;
    if (child !== undefined && this.isRunning) await new Promise((resolve) => child.once("exit", resolve));
  }

  /** As when a container dies at once, except that what it started lives on. */
  async stop(): Promise<void> {
    if (!this.isRunning) return;
    const ended = this.ended();
    this.#child?.kill("SIGKILL");
    await ended;
  }

  remove(): Promise<void> {
    return this.stop();
  }

  async inspect(): Promise<Container> {
    return this.#info();
  }

  async list(): Promise<readonly Container[]> {
    return [this.#info()];
  }

  connect(): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const socket = connect(this.#socket);
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.off("error", reject);
        this.#sockets.add(socket);
        socket.once("close", () => this.#sockets.delete(socket));
        resolve(socket);
      });
    });
  }

  dropConnections(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async commit(): Promise<CommittedImage> {
    throw new Error("not asked for");
  }

  async removeImage(): Promise<boolean> {
    throw new Error("not asked for");
  }

  async committedImages(): Promise<readonly CommittedImage[]> {
    return [];
  }

  async usage(): Promise<ContainerUsage> {
    return { cpuMs: 0, memoryBytes: 0, pids: 0 };
  }

  async written(): Promise<undefined> {
    return undefined;
  }

  async watch(): Promise<void> {}

  async close(): Promise<void> {
    await this.stop();
    await rm(this.#directory, { recursive: true, force: true });
  }

  #info(): Container {
    return {
      sandboxId: this.#spec?.sandboxId ?? "",
      containerId: "c1",
      state: this.isRunning ? "running" : "exited",
      exitCode: this.#child?.exitCode ?? undefined,
      outOfMemory: false,
      image: "",
      user: { uid: 0, gid: 0 },
      startedAt: undefined,
      finishedAt: undefined,
    };
  }
}
