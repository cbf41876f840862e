import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { AidoError } from "@aido/sdk/protocol";
import type {
  Container,
  ContainerSpec,
  ContainerUsage,
  Driver,
  DriverCapabilities,
} from "../../core/driver/driver.ts";
import { removeTree } from "../../core/sandbox/remove-tree.ts";
import { Cgroup } from "./cgroup.ts";
import { type CgroupHierarchy, findCgroupHierarchy } from "./cgroup-hierarchy.ts";
import { checkSpec } from "./check-spec.ts";
import { connectSocket } from "./connect-socket.ts";
import { endSandboxProcesses, until } from "./end-processes.ts";
import { ensureProgram } from "./ensure-packages.ts";
import { toHostname, writeEtc } from "./etc-files.ts";
import { giveToUser } from "./give-to-user.ts";
import { hostRuntime, VISIBLE_PATH } from "./host-image.ts";
import { hostUser } from "./host-user.ts";
import { launchSandbox } from "./launch-sandbox.ts";
import { examineMachine, type Machine, toCapabilities } from "./machine.ts";
import { bootId } from "./process-table.ts";
import { processUsage } from "./process-usage.ts";
import { livingSupervisor, sandboxEnd, toContainer } from "./sandbox-container.ts";
import { withSandboxLock } from "./sandbox-lock.ts";
import { SandboxPaths } from "./sandbox-paths.ts";
import { readState, type SandboxState, writeState } from "./sandbox-state.ts";
import { watchEnds } from "./watch-ends.ts";

const DEFAULT_USER = { uid: 1000, gid: 1000 };
/** From the end of a sandbox's first process until bubblewrap has noted its exit code and left the control group. */
const SETTLE_LIMIT_MS = 5_000;

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
}

/** Sandboxes without any engine: bubblewrap namespaces around the host's own programs. */
export class LocalDriver implements Driver {
  readonly name = "local";
  readonly #options: LocalDriverOptions;
  readonly #isRoot = process.getuid?.() === 0;
  readonly #cgroups: CgroupHierarchy | undefined = findCgroupHierarchy();
  #machine: Promise<Machine> | undefined;

  constructor(options: LocalDriverOptions) {
    this.#options = options;
  }

  async capabilities(signal?: AbortSignal): Promise<DriverCapabilities> {
    signal?.throwIfAborted();
    return toCapabilities(await this.#examine());
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
    return await this.#change(spec.sandboxId, signal, async () => {
      const existing = readState(paths.directory);
      if (existing !== undefined) return this.#container(existing);
      const user = spec.user ?? DEFAULT_USER;
      const hostUid = this.#isRoot ? hostUser(paths.directory) : undefined;
      await mkdir(paths.run, { recursive: true, mode: 0o700 });
      await mkdir(paths.work, { recursive: true, mode: 0o755 });
      await writeEtc(paths.etc, { hostname: toHostname(spec.name), home: spec.workdir, ...user });
      if (hostUid !== undefined) {
        for (const path of [paths.work, paths.etc, ...spec.mounts.map((mount) => mount.source)]) {
          await giveToUser(path, hostUid);
        }
      }
      const { sandboxId, name, image, network, limits, workdir, mounts, labels } = spec;
      const state: SandboxState = {
        version: 1,
        ...{ sandboxId, name, image, network, limits, user, hostUid, workdir, mounts, labels },
        createdAt: new Date().toISOString(),
        start: undefined,
        end: undefined,
      };
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
        if (state.start?.supervisor === undefined) this.#recordStart(state, running);
        return;
      }
      const cgroup = this.#cgroup(sandboxId);
      await this.#clean(cgroup);
      const cgroupProcs = cgroup?.create(state.limits) ?? [];
      const startedAt = new Date().toISOString();
      await rm(paths.status, { force: true });
      // Written before the launch: whoever finds it without a supervisor looks for one that was not recorded.
      const starting = {
        ...state,
        start: { startedAt, bootId: bootId(), supervisor: undefined },
        end: undefined,
      };
      writeState(paths.directory, starting);
      const supervisor = await launchSandbox({
        ...{ bwrap: machine.bwrap, agentPath: this.#options.agentPath, paths, cgroupProcs, signal },
        processor: machine.processor,
        layout: {
          state,
          hostname: toHostname(state.name),
          agentPath: this.#options.agentPath,
          etc: paths.etc,
          work: paths.work,
          memoryCgroup: cgroup?.memoryDirectory,
          temporaryBytes: state.limits.memoryBytes,
          prlimit: this.#cgroups?.parents.pids === undefined ? machine.prlimit : undefined,
        },
        rlimits: { core: 0, nofile: state.limits.openFiles },
      });
      this.#recordStart(starting, supervisor);
    });
  }

  async stop(sandboxId: string, graceMs: number, signal?: AbortSignal): Promise<void> {
    await this.#change(sandboxId, signal, async () => {
      const state = readState(this.#paths(sandboxId).directory);
      if (state !== undefined) await this.#end(state, graceMs, signal);
    });
  }

  async remove(sandboxId: string): Promise<void> {
    const paths = this.#paths(sandboxId);
    await this.#change(sandboxId, undefined, async () => {
      const state = readState(paths.directory);
      if (state !== undefined) await this.#end(state, 0);
      await this.#clean(this.#cgroup(sandboxId));
      await removeTree(paths.directory);
      this.#cgroup(sandboxId)?.removeScope();
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
    // Disk use is a walk through hostile directories: core asks the supervisor for it.
    if (cpuMs !== undefined && memoryBytes !== undefined && pids !== undefined) {
      return { cpuMs, memoryBytes, pids, diskBytes: undefined };
    }
    const summed = await processUsage(supervisor.pid);
    return {
      cpuMs: cpuMs ?? summed.cpuMs,
      memoryBytes: memoryBytes ?? summed.memoryBytes,
      pids: pids ?? summed.pids,
      diskBytes: undefined,
    };
  }

  async watch(onEnd: (sandboxId: string) => void, signal: AbortSignal): Promise<void> {
    await watchEnds(() => this.list(), onEnd, signal);
  }

  async close(): Promise<void> {
    // Sandboxes outlive us, and nothing is held open between calls.
  }

  #examine(): Promise<Machine> {
    const { root, searchPath, onProgress } = this.#options;
    this.#machine ??= examineMachine(root, { searchPath, isRoot: this.#isRoot, onProgress }).catch(
      (thrown) => {
        this.#machine = undefined;
        throw thrown;
      },
    );
    return this.#machine;
  }

  async #end(state: SandboxState, graceMs: number, signal?: AbortSignal): Promise<void> {
    if (state.start === undefined || state.end !== undefined) return;
    const paths = this.#paths(state.sandboxId);
    const supervisor = livingSupervisor(state, paths);
    if (supervisor !== undefined) {
      await endSandboxProcesses(supervisor, graceMs, signal);
      await until(() => sandboxEnd(state, paths, undefined).exitCode !== undefined, SETTLE_LIMIT_MS);
    }
    const cgroup = this.#cgroup(state.sandboxId);
    writeState(paths.directory, { ...state, end: sandboxEnd(state, paths, cgroup) });
    await this.#clean(cgroup);
    await rm(paths.socket, { force: true });
  }

  /** Whatever is left in the control groups belongs to a start that was cut short before it was recorded. */
  async #clean(cgroup: Cgroup | undefined): Promise<void> {
    if (cgroup === undefined) return;
    await until(() => {
      cgroup.kill();
      return cgroup.remove();
    }, SETTLE_LIMIT_MS);
  }

  #recordStart(state: SandboxState, supervisor: NonNullable<SandboxState["start"]>["supervisor"]): void {
    if (state.start === undefined) return;
    writeState(this.#paths(state.sandboxId).directory, { ...state, start: { ...state.start, supervisor } });
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
