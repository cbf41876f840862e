import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { AidoError, isAidoError } from "@aido/sdk/protocol";
import type {
  CommittedImage,
  Container,
  ContainerSpec,
  ContainerUsage,
  Driver,
  DriverCapabilities,
} from "../../core/driver/driver.ts";
import { directoryBytes } from "../../core/hostile-files/directory-bytes.ts";
import { removeTree } from "../../core/sandbox/remove-tree.ts";
import { Cgroup } from "./cgroup.ts";
import { type CgroupHierarchy, findCgroupHierarchy } from "./cgroup-hierarchy.ts";
import { checkSpec } from "./check-spec.ts";
import { CommittedArchives } from "./committed-archives.ts";
import { connectSocket } from "./connect-socket.ts";
import { ensureProgram } from "./ensure-packages.ts";
import { findProgram } from "./find-program.ts";
import { hostRuntime, hostStandIn, VISIBLE_PATH } from "./host-image.ts";
import { LocalImages } from "./local-images.ts";
import { examineMachine, type Machine, toCapabilities } from "./machine.ts";
import { prepareSandbox } from "./prepare-sandbox.ts";
import { processUsage } from "./process-usage.ts";
import { livingSupervisor, toContainer } from "./sandbox-container.ts";
import { cleanCgroup, endSandbox, recordLaunch, type SandboxPlace, startSandbox } from "./sandbox-life.ts";
import { withSandboxLock } from "./sandbox-lock.ts";
import { SandboxPaths } from "./sandbox-paths.ts";
import { readState, type SandboxState, writeState } from "./sandbox-state.ts";
import { watchEnds } from "./watch-ends.ts";

export interface LocalDriverOptions {
  /** A directory of the driver's own, `<dataDir>/local`. */
  root: string;
  /** Names what this aido owns where names are the machine's: control groups. */
  scope: string;
  /** The supervisor's binary for this machine. */
  agentPath: string;
  /** The caller's PATH. */
  searchPath: string;
  /** Told about steps that take long, such as the installation of bubblewrap. */
  onProgress?: ((step: string) => void) | undefined;
  /** False acts as where the kernel refuses user namespaces. For tests on machines that do not. */
  userNamespaces?: boolean | undefined;
  /** False acts as where this user may make none. For tests as well. */
  controlGroups?: boolean | undefined;
}

/** Sandboxes without any engine: bubblewrap namespaces around the host's own programs. */
export class LocalDriver implements Driver {
  readonly name = "local";
  readonly images = new LocalImages();
  readonly #options: LocalDriverOptions;
  readonly #isRoot = process.getuid?.() === 0;
  readonly #archives: CommittedArchives;
  readonly #cgroups: CgroupHierarchy | undefined;
  #machine: Promise<Machine> | undefined;

  constructor(options: LocalDriverOptions) {
    this.#options = options;
    this.#archives = new CommittedArchives(options.root);
    this.#cgroups = options.controlGroups === false ? undefined : findCgroupHierarchy();
  }

  async capabilities(signal?: AbortSignal): Promise<DriverCapabilities> {
    signal?.throwIfAborted();
    return toCapabilities(await this.#examine());
  }

  async hasImage(image: string): Promise<boolean> {
    try {
      const runtime = hostRuntime(image);
      return runtime === undefined || findProgram(runtime.program, VISIBLE_PATH) !== undefined;
    } catch (thrown) {
      if (isAidoError(thrown, "IMAGE_NOT_FOUND")) return false;
      throw thrown;
    }
  }

  standIn(image: string): string | undefined {
    return hostStandIn(image);
  }

  async ensureImage(
    image: string,
    options: { signal?: AbortSignal; onProgress?: (step: string) => void } = {},
  ): Promise<void> {
    const runtime = hostRuntime(image);
    if (runtime === undefined) return;
    const { searchPath } = this.#options;
    await ensureProgram(
      { ...runtime, within: VISIBLE_PATH },
      { searchPath, isRoot: this.#isRoot, ...options },
    );
  }

  async create(spec: ContainerSpec, signal?: AbortSignal): Promise<Container> {
    checkSpec(spec);
    hostRuntime(spec.image);
    const paths = this.#paths(spec.sandboxId);
    const machine = await this.#examine();
    return await this.#change(spec.sandboxId, signal, async () => {
      const existing = readState(paths.directory);
      if (existing !== undefined) return this.#container(existing);
      if (spec.committed !== undefined) {
        await this.#archives.unpack(spec.committed, spec.sandboxId, paths.work, signal);
      }
      const state = await prepareSandbox(spec, paths, machine);
      writeState(paths.directory, state);
      return this.#container(state);
    });
  }

  async start(sandboxId: string, signal?: AbortSignal): Promise<void> {
    const paths = this.#paths(sandboxId);
    await this.#change(sandboxId, signal, async () => {
      const state = this.#require(sandboxId);
      const machine = await this.#examine();
      const running = livingSupervisor(state, paths);
      if (running !== undefined) {
        recordLaunch(state, paths, { supervisor: running });
        return;
      }
      await startSandbox({
        ...{
          state,
          paths,
          machine,
          signal,
          cgroup: this.#cgroup(sandboxId),
          agentPath: this.#options.agentPath,
        },
      });
    });
  }

  async stop(sandboxId: string, graceMs: number, signal?: AbortSignal): Promise<void> {
    await this.#change(sandboxId, signal, async () => {
      const state = readState(this.#paths(sandboxId).directory);
      if (state !== undefined) await endSandbox(this.#place(state), graceMs, signal);
    });
  }

  async remove(sandboxId: string): Promise<void> {
    const paths = this.#paths(sandboxId);
    await this.#change(sandboxId, undefined, async () => {
      const state = readState(paths.directory);
      if (state !== undefined) await endSandbox(this.#place(state), 0);
      const cgroup = this.#cgroup(sandboxId);
      await cleanCgroup(cgroup);
      await removeTree(paths.directory);
      cgroup?.removeScope();
    });
  }

  async inspect(sandboxId: string): Promise<Container | undefined> {
    const state = readState(this.#paths(sandboxId).directory);
    return state === undefined ? undefined : this.#container(state);
  }

  async list(): Promise<readonly Container[]> {
    const entries = await readdir(this.#options.root).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return [];
      throw error;
    });
    return entries
      .filter((entry) => !entry.startsWith("."))
      .flatMap((entry) => readState(join(this.#options.root, entry)) ?? [])
      .map((state) => this.#container(state));
  }

  async commit(sandboxId: string, signal?: AbortSignal): Promise<CommittedImage> {
    const paths = this.#paths(sandboxId);
    return await this.#change(sandboxId, signal, async () => {
      if (livingSupervisor(this.#require(sandboxId), paths) !== undefined) {
        throw new AidoError("CONTAINER_BUSY", `Sandbox ${sandboxId} runs, and its files may change`, {
          hint: "Stop it first.",
          details: { id: sandboxId },
        });
      }
      return await this.#archives.pack(sandboxId, paths.work, signal);
    });
  }

  async removeImage(reference: string): Promise<boolean> {
    await this.#archives.remove(reference);
    return true;
  }

  async committedImages(sandboxId?: string): Promise<readonly CommittedImage[]> {
    return await this.#archives.list(sandboxId);
  }

  async connect(sandboxId: string, signal?: AbortSignal): Promise<Duplex> {
    const state = this.#require(sandboxId);
    const paths = this.#paths(sandboxId);
    if (livingSupervisor(state, paths) === undefined) throw notRunning(sandboxId);
    return await connectSocket(paths.socket, signal).catch((thrown: NodeJS.ErrnoException) => {
      if (signal?.aborted) throw thrown;
      if (livingSupervisor(state, paths) === undefined) throw notRunning(sandboxId);
      throw new AidoError("CONTAINER_LOST", `The supervisor of sandbox ${sandboxId} cannot be reached`, {
        cause: thrown,
      });
    });
  }

  async usage(sandboxId: string): Promise<ContainerUsage> {
    const state = this.#require(sandboxId);
    const supervisor = livingSupervisor(state, this.#paths(sandboxId));
    if (supervisor === undefined) throw notRunning(sandboxId);
    const { cpuMs, memoryBytes, pids } = this.#cgroup(sandboxId)?.usage() ?? {};
    if (cpuMs !== undefined && memoryBytes !== undefined && pids !== undefined) {
      return { cpuMs, memoryBytes, pids };
    }
    const summed = await processUsage(supervisor.pid);
    return {
      cpuMs: cpuMs ?? summed.cpuMs,
      memoryBytes: memoryBytes ?? summed.memoryBytes,
      pids: pids ?? summed.pids,
    };
  }

  /** All but the workdir is read-only or in memory. */
  async written(sandboxId: string, signal?: AbortSignal): Promise<number | undefined> {
    const { mounts, workdir } = this.#require(sandboxId);
    if (mounts.some((mount) => mount.target === workdir)) return 0;
    const { bytes, isWhole } = await directoryBytes(this.#paths(sandboxId).work, signal);
    return isWhole ? bytes : undefined;
  }

  async watch(onEnd: (sandboxId: string) => void, signal: AbortSignal): Promise<void> {
    await watchEnds(() => this.list(), onEnd, signal);
  }

  async close(): Promise<void> {
    // Sandboxes outlive us, and nothing is held open between calls.
  }

  #examine(): Promise<Machine> {
    this.#machine ??= examineMachine({
      ...this.#options,
      isRoot: this.#isRoot,
      cgroups: this.#cgroups,
    }).catch((thrown) => {
      this.#machine = undefined;
      throw thrown;
    });
    return this.#machine;
  }

  async #change<Result>(
    sandboxId: string,
    signal: AbortSignal | undefined,
    work: () => Promise<Result>,
  ): Promise<Result> {
    return await withSandboxLock(this.#paths(sandboxId).directory, work, signal);
  }

  #require(sandboxId: string): SandboxState {
    const state = readState(this.#paths(sandboxId).directory);
    if (state !== undefined) return state;
    throw new AidoError("CONTAINER_NOT_FOUND", `The local driver has no sandbox ${sandboxId}`, {
      details: { id: sandboxId },
    });
  }

  #container(state: SandboxState): Container {
    return toContainer(state, this.#paths(state.sandboxId), this.#cgroup(state.sandboxId));
  }

  #place(state: SandboxState): SandboxPlace {
    const { sandboxId } = state;
    return { state, paths: this.#paths(sandboxId), cgroup: this.#cgroup(sandboxId) };
  }

  #cgroup(sandboxId: string): Cgroup | undefined {
    return this.#cgroups && new Cgroup(this.#cgroups, this.#options.scope, sandboxId);
  }

  #paths(sandboxId: string): SandboxPaths {
    return new SandboxPaths(this.#options.root, sandboxId);
  }
}

function notRunning(sandboxId: string): AidoError {
  return new AidoError("CONTAINER_NOT_RUNNING", `Sandbox ${sandboxId} is not running`, {
    hint: `\`aido start ${sandboxId}\` starts it.`,
    details: { id: sandboxId },
  });
}
