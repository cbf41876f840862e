import { AidoError, type Isolation, isAidoError } from "@aido/sdk/protocol";
import type { Clock } from "../../clock.ts";
import type { Container, Driver } from "../../driver/driver.ts";
import type { ExecService } from "../../exec/exec-service.ts";
import type { SandboxService } from "../../sandbox/sandbox-service.ts";
import type { SandboxRecord, Store } from "../../store/store.ts";
import { orAborted } from "../../supervisor/time-limit.ts";
import { WorkerAdapter } from "./worker-adapter.ts";
import { findWorker, getWorker, isWorker, toSandboxRequest } from "./worker-sandbox.ts";
import { toWorkerInfo } from "./worker-status.ts";
import type {
  AdapterStart,
  CreatedWorker,
  OutputOffsets,
  WorkerEvent,
  WorkerInfo,
  WorkerRequest,
  Workers,
} from "./workers.ts";

const PAGE = 1000;

export interface WorkerDeps {
  readonly sandboxes: SandboxService;
  readonly execs: ExecService;
  readonly driver: Driver;
  readonly store: Store;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** Workers as sandboxes: records, claims, recorded output and the supervisor are those of every sandbox. */
export class SandboxWorkers implements Workers {
  readonly #deps: WorkerDeps;
  readonly #adapter: WorkerAdapter;

  constructor(deps: WorkerDeps) {
    this.#deps = deps;
    this.#adapter = new WorkerAdapter(deps);
  }

  async checkRuntime(isolation: Isolation, signal?: AbortSignal): Promise<void> {
    // As for any sandbox that is asked for: what the machine can give is asked once for all of them.
    const built = this.#deps.sandboxes.build({ profile: "swarm", isolation, network: "bridge" });
    await orAborted(built, signal);
  }

  async create(request: WorkerRequest, signal?: AbortSignal): Promise<CreatedWorker> {
    const { sandboxes, newId } = this.#deps;
    const wanted = toSandboxRequest(request, newId());
    await this.checkRuntime(request.isolation, signal);
    await this.#removeEnded(request.name);
    const made = await sandboxes.create(wanted, signal && { signal });
    const { name, image, limits } = request;
    return { containerId: made.containerId ?? "", name, image, network: `${name}-net`, limits };
  }

  async restart(name: string, signal?: AbortSignal): Promise<string> {
    const { sandboxes, store, driver } = this.#deps;
    const worker = await getWorker(store.sandboxes, name);
    // What is paused answers nothing, and nobody but its user can let it go on.
    const isPaused = (await driver.inspect(worker.id))?.nativeState === "paused";
    const { state } = await (isPaused ? sandboxes.stop(worker.id, { graceMs: 0 }) : sandboxes.get(worker.id));
    if (state !== "running") await this.#adapter.clear(worker);
    return (await sandboxes.start(worker.id, signal)).containerId ?? "";
  }

  async status(name: string, signal?: AbortSignal): Promise<WorkerInfo> {
    signal?.throwIfAborted();
    const record = await findWorker(this.#deps.store.sandboxes, name);
    if (record !== undefined) return await this.#info(record);
    // An engine that is not there says nothing about a worker that nobody knows either.
    await this.#deps.driver.inspect(name);
    return { name, exists: false, swarmState: "not_found" };
  }

  async isKnown(name: string): Promise<boolean> {
    return (await findWorker(this.#deps.store.sandboxes, name)) !== undefined;
  }

  async list(signal?: AbortSignal): Promise<readonly WorkerInfo[]> {
    const { driver } = this.#deps;
    const records = await this.#records();
    const containers = new Map((await driver.list()).map((container) => [container.sandboxId, container]));
    signal?.throwIfAborted();
    const infos: WorkerInfo[] = [];
    for (const record of records) infos.push(await this.#info(record, containers.get(record.id)));
    return infos;
  }

  async remove(name: string): Promise<void> {
    const record = await findWorker(this.#deps.store.sandboxes, name);
    if (record !== undefined) await this.#deps.sandboxes.destroy(record.id);
  }

  async startAdapter(name: string, start: AdapterStart, signal?: AbortSignal): Promise<void> {
    await this.#adapter.start(await getWorker(this.#deps.store.sandboxes, name), start, signal);
  }

  async *follow(name: string, from: OutputOffsets, signal?: AbortSignal): AsyncGenerator<WorkerEvent> {
    yield* this.#adapter.follow(await getWorker(this.#deps.store.sandboxes, name), from, signal);
  }

  async stop(name: string, graceMs: number): Promise<void> {
    const record = await findWorker(this.#deps.store.sandboxes, name);
    if (record !== undefined) await this.#adapter.stop(record, graceMs);
  }

  async #info(record: SandboxRecord, known?: Container): Promise<WorkerInfo> {
    const { driver, store } = this.#deps;
    const container = known ?? (await driver.inspect(record.id));
    // Whoever took the container away may have left its network; what is just being made has none yet.
    const isLeft = container === undefined && record.state !== "pending";
    if (isLeft && (await store.claims.get(record.id)) === undefined) await driver.remove(record.id);
    // One that has ended may have done so before anybody wrote down that it had its task.
    const isOver = container?.state === "exited" && (await this.#adapter.hasEnded(record));
    return toWorkerInfo(record, container, isOver || undefined);
  }

  /** What a killed process left half made is finished first; what runs or is being made keeps its name. */
  async #removeEnded(name: string): Promise<void> {
    const { sandboxes, store } = this.#deps;
    const before = await findWorker(store.sandboxes, name);
    if (before === undefined) return;
    const state = await sandboxes.get(before.id).then(
      (info) => info.state,
      (thrown: unknown) => {
        if (isAidoError(thrown, "CONTAINER_NOT_FOUND")) return "deleted";
        throw thrown;
      },
    );
    if (state === "deleted") return;
    if (state !== "stopped") {
      throw new AidoError("CONTAINER_NAME_TAKEN", `There is a worker ${name} already`, {
        hint: `Remove it with \`aido sandbox-manager remove ${name}\` first.`,
        details: { name },
      });
    }
    await sandboxes.destroy(before.id);
  }

  async #records(): Promise<SandboxRecord[]> {
    const { store, driver } = this.#deps;
    const found: SandboxRecord[] = [];
    for (let before: string | undefined; ; ) {
      const page = await store.sandboxes.list({ limit: PAGE, before });
      found.push(...page.filter((record) => isWorker(record) && record.driver === driver.name));
      before = page.at(-1)?.id;
      if (page.length < PAGE) return found;
    }
  }
}
