import { type Duplex, duplexPair } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { AidoError } from "@aido/sdk/protocol";
import type { Clock } from "../../core/clock.ts";
import type {
  CommittedImage,
  Container,
  ContainerSpec,
  ContainerUsage,
  Driver,
  DriverCapabilities,
} from "../../core/driver/driver.ts";
import type { ExecFrame } from "../../core/supervisor/frames.ts";
import { FakeImages } from "./fake-images.ts";
import { FAKE_PROGRAMS, type FakeProgram } from "./fake-program.ts";
import { FakeSupervisor } from "./fake-supervisor.ts";
import { FakeTree } from "./fake-tree.ts";

export interface FakeDriverOptions {
  clock?: Clock | undefined;
  /** Besides those of FAKE_PROGRAMS; a command is found by the last component of argv[0]. */
  programs?: Readonly<Record<string, FakeProgram>> | undefined;
  /** Images that are not there raise IMAGE_NOT_FOUND; undefined means every image is. */
  images?: readonly string[] | undefined;
  /** What every image sets for its processes. */
  imageEnv?: Readonly<Record<string, string>> | undefined;
  capabilities?: Partial<DriverCapabilities> | undefined;
}

interface FakeContainer {
  spec: ContainerSpec;
  info: Container;
  files: FakeTree;
  supervisor: FakeSupervisor | undefined;
}

interface FakeImage {
  info: CommittedImage;
  files: FakeTree;
}

type Fallible =
  | "capabilities"
  | "commit"
  | "removeImage"
  | "ensureImage"
  | "create"
  | "start"
  | "stop"
  | "remove"
  | "connect"
  | "inspect"
  | "written";

/**
 * A driver in memory for unit tests: containers are objects, programs are functions, the supervisor speaks the
 * real protocol over an in-memory stream. Files lie in a temporary directory until `remove` or `close`.
 *
 *     await using driver = createFakeDriver({ programs: { greet: async (p) => { await p.stdout("hi\n"); return 3; } } });
 *     driver.dropConnections(id);            // the host must reconnect and read on
 *     driver.crash(id, { exitCode: 137 });   // the container dies with all it ran
 *     driver.stall(id, true);                // the supervisor no longer answers
 *     driver.haltTools(id, true);            // builtin tools start and then do nothing, as if stopped by SIGSTOP
 *     driver.failNext("create", new AidoError(…));
 *     driver.started(id)                     // EXEC frames, to see argv, env, user
 *     driver.files(id)                       // look at or prepare the sandbox's files
 */
export class FakeDriver implements Driver, AsyncDisposable {
  readonly name = "fake";
  readonly images: FakeImages;
  readonly #options: FakeDriverOptions;
  readonly #clock: Clock;
  readonly #programs: Map<string, FakeProgram>;
  readonly #containers = new Map<string, FakeContainer>();
  readonly #images = new Map<string, FakeImage>();
  readonly #watchers = new Set<(sandboxId: string) => void>();
  readonly #work = new Map<string, number>();
  readonly #failures = new Map<Fallible, Error[]>();
  #made = 0;

  constructor(options: FakeDriverOptions = {}) {
    this.#options = options;
    this.#clock = options.clock ?? {
      now: () => new Date(),
      sleep: (ms, signal) => sleep(ms, undefined, { ref: false, ...(signal && { signal }) }),
    };
    this.images = new FakeImages(options.images ?? [], (image) =>
      [...this.#containers.values()].some(({ spec }) => spec.image === image),
    );
    this.#programs = new Map(Object.entries({ ...FAKE_PROGRAMS, ...options.programs }));
  }

  async capabilities(): Promise<DriverCapabilities> {
    this.#maybeFail("capabilities");
    return {
      version: "fake 1",
      isolations: ["container"],
      networks: ["none", "bridge"],
      enforced: { cpus: true, memory: true, pids: true, disk: false },
      users: true,
      images: true,
      privileged: false,
      warnings: [],
      ...this.#options.capabilities,
    };
  }

  async hasImage(image: string): Promise<boolean> {
    return this.#options.images === undefined || this.images.has(image);
  }

  standIn(): undefined {
    return undefined;
  }

  async ensureImage(image: string): Promise<void> {
    this.#maybeFail("ensureImage");
    if (!(await this.hasImage(image))) {
      throw new AidoError("IMAGE_NOT_FOUND", `There is no image ${image}`);
    }
    this.images.add(image);
  }

  async create(spec: ContainerSpec): Promise<Container> {
    this.#maybeFail("create");
    const known = this.#containers.get(spec.sandboxId);
    if (known !== undefined) return { ...known.info };
    const files =
      spec.committed === undefined
        ? new FakeTree(spec.mounts)
        : await this.#filesOf(spec.committed, spec.mounts);
    this.#made += 1;
    const info: Container = {
      sandboxId: spec.sandboxId,
      containerId: `fake-${this.#made}`,
      state: "created",
      exitCode: undefined,
      outOfMemory: false,
      image: spec.image,
      imageEnv: this.#options.imageEnv,
      user: spec.user ?? { uid: 1000, gid: 1000 },
      startedAt: undefined,
      finishedAt: undefined,
    };
    this.#containers.set(spec.sandboxId, { spec, info, files, supervisor: undefined });
    return { ...info };
  }

  async start(sandboxId: string): Promise<void> {
    this.#maybeFail("start");
    const container = this.#get(sandboxId);
    if (container.supervisor !== undefined) return;
    container.info = {
      ...container.info,
      state: "running",
      exitCode: undefined,
      outOfMemory: false,
      startedAt: this.#clock.now(),
      finishedAt: undefined,
    };
    container.supervisor = new FakeSupervisor({
      clock: this.#clock,
      files: container.files,
      user: container.info.user,
      workdir: container.spec.workdir,
      program: (name) => this.#programs.get(name),
      onExit: (exitCode) => this.#ended(container, exitCode),
    });
  }

  async stop(sandboxId: string, _graceMs: number): Promise<void> {
    this.#maybeFail("stop");
    this.#containers.get(sandboxId)?.supervisor?.exit(0);
  }

  async remove(sandboxId: string): Promise<void> {
    this.#maybeFail("remove");
    const container = this.#containers.get(sandboxId);
    if (container === undefined) return;
    container.supervisor?.exit(137);
    this.#containers.delete(sandboxId);
    await container.files.dispose();
  }

  async inspect(sandboxId: string): Promise<Container | undefined> {
    this.#maybeFail("inspect");
    const info = this.#containers.get(sandboxId)?.info;
    return info === undefined ? undefined : { ...info };
  }

  async list(): Promise<readonly Container[]> {
    return [...this.#containers.values()].map(({ info }) => ({ ...info }));
  }

  async commit(sandboxId: string): Promise<CommittedImage> {
    this.#maybeFail("commit");
    const container = this.#get(sandboxId);
    if (container.supervisor !== undefined) {
      throw new AidoError("CONTAINER_BUSY", `Sandbox ${sandboxId} runs`);
    }
    this.#made += 1;
    const reference = `fake-image-${this.#made}`;
    const info = { reference, sandboxId, createdAt: this.#clock.now(), bytes: 0 };
    this.#images.set(reference, { info, files: await container.files.copy([]) });
    return { ...info };
  }

  async removeImage(reference: string): Promise<boolean> {
    this.#maybeFail("removeImage");
    if (!reference.startsWith("fake-image-")) {
      throw new AidoError("FORBIDDEN", `${reference} is no image of the fake driver`);
    }
    if ([...this.#containers.values()].some(({ spec }) => spec.committed === reference)) return false;
    const image = this.#images.get(reference);
    this.#images.delete(reference);
    await image?.files.dispose();
    return true;
  }

  async committedImages(sandboxId?: string): Promise<readonly CommittedImage[]> {
    const all = [...this.#images.values()].map(({ info }) => ({ ...info })).reverse();
    return all.filter((image) => sandboxId === undefined || image.sandboxId === sandboxId);
  }

  async connect(sandboxId: string): Promise<Duplex> {
    this.#maybeFail("connect");
    const supervisor = this.#containers.get(sandboxId)?.supervisor;
    if (supervisor === undefined) {
      throw new AidoError("CONTAINER_NOT_RUNNING", `Sandbox ${sandboxId} does not run`);
    }
    const [host, inside] = duplexPair();
    supervisor.accept(inside);
    inside.on("close", () => host.destroy());
    host.on("close", () => inside.destroy());
    return host;
  }

  async usage(sandboxId: string): Promise<ContainerUsage> {
    this.#get(sandboxId);
    const workMs = this.#clock.now().getTime() * (this.#work.get(sandboxId) ?? 0);
    return { cpuMs: 10 + workMs, memoryBytes: 1_048_576, pids: 1 };
  }

  async written(): Promise<undefined> {
    this.#maybeFail("written");
    return undefined;
  }

  async watch(onEnd: (sandboxId: string) => void, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    this.#watchers.add(onEnd);
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    this.#watchers.delete(onEnd);
  }

  /** Ends and removes everything, since a fake has no life beyond its process. */
  async close(): Promise<void> {
    this.#failures.clear();
    for (const id of [...this.#containers.keys()]) await this.remove(id);
    for (const { files } of this.#images.values()) await files.dispose();
    this.#images.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  dropConnections(sandboxId: string): void {
    this.#get(sandboxId).supervisor?.dropConnections();
  }

  crash(sandboxId: string, how: { exitCode?: number; outOfMemory?: boolean } = {}): void {
    const container = this.#get(sandboxId);
    container.supervisor?.exit(how.exitCode ?? 137);
    container.info = { ...container.info, outOfMemory: how.outOfMemory ?? false };
  }

  /** It uses so many processors from now on. */
  work(sandboxId: string, cpus: number): void {
    this.#work.set(sandboxId, cpus);
  }

  stall(sandboxId: string, isStalled: boolean): void {
    this.#get(sandboxId).supervisor?.stall(isStalled);
  }

  haltTools(sandboxId: string, areHalted: boolean): void {
    this.#get(sandboxId).supervisor?.haltTools(areHalted);
  }

  sendRaw(sandboxId: string, bytes: Uint8Array): void {
    this.#get(sandboxId).supervisor?.sendRaw(bytes);
  }

  failNext(method: Fallible, error: Error): void {
    this.#failures.set(method, [...(this.#failures.get(method) ?? []), error]);
  }

  addProgram(name: string, program: FakeProgram): void {
    this.#programs.set(name, program);
  }

  started(sandboxId: string): readonly ExecFrame[] {
    return this.#get(sandboxId).supervisor?.started ?? [];
  }

  spec(sandboxId: string): ContainerSpec {
    return this.#get(sandboxId).spec;
  }

  files(sandboxId: string): FakeTree {
    return this.#get(sandboxId).files;
  }

  async #filesOf(committed: string, mounts: ContainerSpec["mounts"]): Promise<FakeTree> {
    const image = this.#images.get(committed);
    if (image === undefined) throw new AidoError("IMAGE_NOT_FOUND", `There is no image ${committed}`);
    return await image.files.copy(mounts);
  }

  #ended(container: FakeContainer, exitCode: number): void {
    container.supervisor = undefined;
    container.info = { ...container.info, state: "exited", exitCode, finishedAt: this.#clock.now() };
    for (const watcher of this.#watchers) watcher(container.info.sandboxId);
  }

  #get(sandboxId: string): FakeContainer {
    const container = this.#containers.get(sandboxId);
    if (container === undefined)
      throw new AidoError("CONTAINER_NOT_FOUND", `There is no sandbox ${sandboxId}`);
    return container;
  }

  #maybeFail(method: Fallible): void {
    const error = this.#failures.get(method)?.shift();
    if (error !== undefined) throw error;
  }
}

export function createFakeDriver(options: FakeDriverOptions = {}): FakeDriver {
  return new FakeDriver(options);
}
