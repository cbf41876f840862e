import { AidoError, type Isolation } from "@aido/sdk/protocol";
import type {
  AdapterStart,
  CreatedWorker,
  OutputOffsets,
  WorkerEnd,
  WorkerEvent,
  WorkerInfo,
  WorkerRequest,
  Workers,
} from "../workers/workers.ts";

/** Workers in memory: a test writes the part of the adapter itself, through `worker(name)`. */
export class FakeWorkers implements Workers {
  readonly all = new Map<string, FakeWorker>();
  /** What the engine can give. */
  isolations: readonly Isolation[] = ["container", "sysbox"];
  /** Thrown by whatever asks the engine, until it is cleared. */
  engineError: AidoError | undefined;
  /** Called at each start, to play an adapter that answers by itself. */
  onStart: ((worker: FakeWorker) => void) | undefined;
  #made = 0;

  worker(name: string): FakeWorker {
    const worker = this.all.get(name);
    if (worker === undefined) throw notFound(name);
    return worker;
  }

  async checkRuntime(isolation: Isolation): Promise<void> {
    this.#answer();
    if (this.isolations.includes(isolation)) return;
    throw new AidoError("ISOLATION_UNAVAILABLE", `The engine has no runtime for the isolation ${isolation}`);
  }

  async create(request: WorkerRequest, signal?: AbortSignal): Promise<CreatedWorker> {
    signal?.throwIfAborted();
    await this.checkRuntime(request.isolation);
    const before = this.all.get(request.name);
    if (before !== undefined && before.end === undefined) {
      throw new AidoError("CONTAINER_NAME_TAKEN", `There is a worker ${request.name} already`);
    }
    this.#made += 1;
    const worker = new FakeWorker(request, this.#made.toString(16).padStart(64, "0"));
    this.all.set(request.name, worker);
    const { name, image, limits } = request;
    return { containerId: worker.containerId, name, image, network: `${name}-net`, limits };
  }

  async restart(name: string, signal?: AbortSignal): Promise<string> {
    signal?.throwIfAborted();
    this.#answer();
    const worker = this.worker(name);
    if (worker.end !== undefined || worker.dockerState === "paused") worker.restart();
    return worker.containerId;
  }

  async status(name: string): Promise<WorkerInfo> {
    this.#answer();
    return this.all.get(name)?.info() ?? { name, exists: false, swarmState: "not_found" };
  }

  async isKnown(name: string): Promise<boolean> {
    return this.all.has(name);
  }

  async list(): Promise<readonly WorkerInfo[]> {
    this.#answer();
    return [...this.all.values()].map((worker) => worker.info());
  }

  async remove(name: string): Promise<void> {
    this.#answer();
    this.all.get(name)?.finish(undefined);
    this.all.delete(name);
  }

  async startAdapter(name: string, start: AdapterStart, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    this.#answer();
    const worker = this.worker(name);
    if (worker.started !== undefined) return;
    worker.started = start;
    this.onStart?.(worker);
  }

  async *follow(name: string, from: OutputOffsets, signal?: AbortSignal): AsyncGenerator<WorkerEvent> {
    this.#answer();
    const worker = this.worker(name);
    if (worker.started === undefined) {
      throw new AidoError("EXECUTION_NOT_FOUND", `The worker ${name} was not started`);
    }
    yield* worker.follow(from, signal);
  }

  async stop(name: string, graceMs: number): Promise<void> {
    this.#answer();
    const worker = this.all.get(name);
    if (worker?.started === undefined || worker.end !== undefined) return;
    worker.stops.push(graceMs);
    if (worker.onStop === undefined) worker.finish(143, { signal: "SIGTERM" });
    else worker.onStop(graceMs);
  }

  #answer(): void {
    if (this.engineError !== undefined) throw this.engineError;
  }
}

export class FakeWorker {
  readonly request: WorkerRequest;
  readonly containerId: string;
  started: AdapterStart | undefined;
  end: WorkerEnd | undefined;
  /** What the engine says of it while it runs; a test may have it paused. */
  dockerState = "running";
  /** What the container holds, for a test to say. */
  files: readonly string[] = [];
  /** The graces of each stop. */
  readonly stops: number[] = [];
  /** The adapter's answer to a stop; without one it ends at once. */
  onStop: ((graceMs: number) => void) | undefined;
  readonly #output = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
  readonly #waiting = new Set<() => void>();

  constructor(request: WorkerRequest, containerId: string) {
    this.request = request;
    this.containerId = containerId;
  }

  /** What the adapter writes, a line or any bytes. */
  write(data: string | Uint8Array, stream: "stdout" | "stderr" = "stdout"): void {
    this.#output[stream] = Buffer.concat([this.#output[stream], Buffer.from(data as string)]);
    this.#wake();
  }

  /** A message as the adapter sends it. */
  say(message: object): void {
    this.write(`${JSON.stringify(message)}\n`);
  }

  finish(
    exitCode: number | undefined,
    more: { signal?: string; outOfMemory?: boolean; timedOut?: boolean } = {},
  ): void {
    const { signal, outOfMemory = false, timedOut } = more;
    this.end ??= { type: "end", exitCode, signal, outOfMemory, timedOut };
    this.#wake();
  }

  /** The container with its files, and nothing of what ran in it. */
  restart(): void {
    this.started = undefined;
    this.end = undefined;
    this.onStop = undefined;
    this.dockerState = "running";
    this.#output.stdout = Buffer.alloc(0);
    this.#output.stderr = Buffer.alloc(0);
  }

  info(): WorkerInfo {
    const { name, image, taskFilePath } = this.request;
    const { containerId } = this;
    const known = { name, exists: true, containerId, image, runtime: "fake", taskFilePath };
    if (this.end !== undefined) {
      const { exitCode } = this.end;
      const swarmState = exitCode === 0 ? "completed" : "failed";
      return { ...known, dockerState: "exited", swarmState, exitCode };
    }
    const isStopped = this.dockerState === "paused" || this.dockerState === "removing";
    const swarmState = isStopped ? "stopped" : this.started === undefined ? "pending" : "running";
    return { ...known, dockerState: this.dockerState, swarmState };
  }

  async *follow(from: OutputOffsets, signal?: AbortSignal): AsyncGenerator<WorkerEvent> {
    const at = { stdout: from.stdoutOffset, stderr: from.stderrOffset };
    for (;;) {
      signal?.throwIfAborted();
      const { end } = this;
      for (const stream of ["stdout", "stderr"] as const) {
        const data = this.#output[stream].subarray(at[stream]);
        if (data.length === 0) continue;
        yield { type: "output", stream, offset: at[stream], data };
        at[stream] += data.length;
      }
      if (end !== undefined) {
        yield end;
        return;
      }
      if (from.untilNow) return;
      await this.#change(at, signal);
    }
  }

  async #change(at: { stdout: number; stderr: number }, signal?: AbortSignal): Promise<void> {
    const isBehind = this.#output.stdout.length > at.stdout || this.#output.stderr.length > at.stderr;
    if (isBehind || this.end !== undefined || signal?.aborted) return;
    await new Promise<void>((resolve) => {
      const wake = () => {
        this.#waiting.delete(wake);
        signal?.removeEventListener("abort", wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal?.addEventListener("abort", wake, { once: true });
    });
  }

  #wake(): void {
    for (const wake of [...this.#waiting]) wake();
  }
}

function notFound(name: string): AidoError {
  return new AidoError("CONTAINER_NOT_FOUND", `There is no worker ${name}`);
}
