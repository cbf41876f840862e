import { rm } from "node:fs/promises";
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
import { orAborted } from "../../core/supervisor/time-limit.ts";
import { checkImageName } from "./check-image-name.ts";
import { CommittedImages } from "./committed-images.ts";
import { connectExec } from "./connect-exec.ts";
import { connectSocket } from "./connect-socket.ts";
import { ContainerIndex, type Place } from "./container-index.ts";
import { removeContainer, startContainer, stopContainer } from "./container-life.ts";
import { createContainer } from "./create-container.ts";
import { DockerImages } from "./docker-images.ts";
import { Engine, type EngineOptions } from "./engine.ts";
import { removeOwnNetworks } from "./own-network.ts";
import { ensureImage, hasImage, type PullOptions } from "./pull-image.ts";
import { toCapabilities } from "./to-capabilities.ts";
import { UsageReader } from "./usage-reader.ts";
import { waitForSupervisor } from "./wait-for-supervisor.ts";
import { watchEnds } from "./watch-ends.ts";
import { writtenBytes } from "./written-bytes.ts";

export interface DockerDriverOptions extends EngineOptions {
  /** Tells this installation's sandboxes from others' on the same engine. */
  readonly scope: string;
  /** The supervisor's binary on this machine. */
  readonly agentPath: string;
  /** Host directory for one sandbox's supervisor socket. */
  readonly runDir: (sandboxId: string) => string;
  /** Host path of the /etc/hosts of sandboxes without a network; written when it is first needed. */
  readonly hostsFile: string;
}

/** Sandboxes as containers of a Docker engine. */
export class DockerDriver implements Driver {
  readonly name = "docker";
  readonly images: DockerImages;
  readonly #options: DockerDriverOptions;
  readonly #engine: Engine;
  readonly #images: CommittedImages;
  readonly #index: ContainerIndex;
  readonly #usage: UsageReader;
  readonly #making = new Map<string, Promise<Container>>();
  readonly #closing = new AbortController();

  constructor(options: DockerDriverOptions) {
    this.#options = options;
    this.#engine = new Engine(options);
    this.#images = new CommittedImages(this.#engine, options.scope);
    this.images = new DockerImages(this.#engine, options.scope);
    this.#index = new ContainerIndex(this.#engine, options.scope);
    this.#usage = new UsageReader(this.#engine);
  }

  async capabilities(signal?: AbortSignal): Promise<DriverCapabilities> {
    const engine = this.#engine;
    const [info, networks] = await Promise.all([
      engine.info({ signal, fresh: true }),
      engine.networks(signal),
    ]);
    return toCapabilities(info, {
      hasBridge: networks.some((network) => network.Name === "bridge" && network.Driver === "bridge"),
      local: engine.address.local,
    });
  }

  async hasImage(image: string, signal?: AbortSignal): Promise<boolean> {
    checkImageName(image);
    return await hasImage(this.#engine, image, signal);
  }

  standIn(): undefined {
    return undefined;
  }

  ensureImage(image: string, options: PullOptions = {}): Promise<void> {
    // Asked for by every create that follows; its failure is told there.
    this.#engine.info().catch(() => undefined);
    return ensureImage(this.#engine, image, options);
  }

  create(spec: ContainerSpec, signal?: AbortSignal): Promise<Container> {
    const making = this.#create(spec, signal).finally(() => {
      if (this.#making.get(spec.sandboxId) === making) this.#making.delete(spec.sandboxId);
    });
    this.#making.set(spec.sandboxId, making);
    return orAborted(making, signal);
  }

  async #create(spec: ContainerSpec, signal?: AbortSignal): Promise<Container> {
    const runDir = this.#options.runDir(spec.sandboxId);
    try {
      const place = await createContainer(this.#engine, spec, { ...this.#options, runDir, signal });
      this.#index.remember(place);
      return await this.#index.inspect(spec.sandboxId, place.containerId);
    } catch (thrown) {
      // It may have been made before, here or by another process; a name that something else has stays an error.
      const isTaken = isAidoError(thrown, "CONTAINER_NAME_TAKEN") && !("network" in thrown.details);
      const other = isTaken ? await this.#index.awaitNamed(spec.sandboxId, spec.name) : undefined;
      if (other !== undefined) return other;
      if (spec.network === "isolated") await this.#removeNetworks(spec.sandboxId, false);
      throw thrown;
    }
  }

  async start(sandboxId: string, signal?: AbortSignal): Promise<void> {
    const place = await this.#index.get(sandboxId);
    this.#usage.forget(place.containerId);
    await startContainer(this.#engine, place, signal);
    await waitForSupervisor({
      sandboxId,
      connect: (attempt) => this.#dial(place, attempt),
      inspect: () => this.inspect(sandboxId),
      signal,
    });
  }

  async stop(sandboxId: string, graceMs: number, signal?: AbortSignal): Promise<void> {
    const place = (await this.#index.findAll(sandboxId))[0];
    if (place === undefined) return;
    await stopContainer(this.#engine, place, graceMs, signal);
    this.#usage.forget(place.containerId);
  }

  async remove(sandboxId: string): Promise<void> {
    // Whoever gave it up did not wait for what the engine makes meanwhile, and nobody else would find that.
    await this.#making.get(sandboxId)?.catch(() => undefined);
    const known = this.#index.known(sandboxId);
    const [all] = await Promise.all([
      this.#index.findAll(sandboxId),
      known === undefined ? undefined : removeContainer(this.#engine, known),
    ]);
    for (const place of all) {
      if (place.containerId !== known?.containerId) await removeContainer(this.#engine, place);
      this.#usage.forget(place.containerId);
    }
    const places = known === undefined ? all : [known, ...all];
    // With no container left to tell, a network may have outlived it.
    if (places.length === 0 || places.some((place) => place.hasOwnNetwork))
      await this.#removeNetworks(sandboxId, places.length > 0);
    this.#index.forget(sandboxId);
    await rm(this.#options.runDir(sandboxId), { recursive: true, force: true });
  }

  inspect(sandboxId: string): Promise<Container | undefined> {
    return this.#index.current(sandboxId);
  }

  list(): Promise<readonly Container[]> {
    return this.#index.list();
  }

  async commit(sandboxId: string, signal?: AbortSignal): Promise<CommittedImage> {
    // Asked anew: another process may have replaced the container that this one knows.
    this.#index.forget(sandboxId);
    return this.#images.commit(await this.#index.get(sandboxId), signal);
  }

  removeImage(reference: string): Promise<boolean> {
    return this.#images.remove(reference);
  }

  committedImages(sandboxId?: string): Promise<readonly CommittedImage[]> {
    return this.#images.list(sandboxId);
  }

  async connect(sandboxId: string, signal?: AbortSignal): Promise<Duplex> {
    try {
      // The usual case needs nothing from the engine.
      return await connectSocket(this.#socketPath(sandboxId), signal);
    } catch (thrown) {
      if (signal?.aborted === true || isAidoError(thrown)) throw thrown;
      return this.#connectOtherwise(sandboxId, thrown, signal);
    }
  }

  async #connectOtherwise(sandboxId: string, cause: unknown, signal?: AbortSignal): Promise<Duplex> {
    const place = await this.#index.get(sandboxId);
    const container = await this.#index.inspect(sandboxId, place.containerId);
    if (container.state !== "running") {
      throw new AidoError("CONTAINER_NOT_RUNNING", `Sandbox ${sandboxId} is not running`, {
        details: { sandboxId, exitCode: container.exitCode },
      });
    }
    if (place.transport === "exec") return connectExec(this.#engine, place, signal);
    throw new AidoError("CONTAINER_LOST", `Sandbox ${sandboxId} runs, but its supervisor cannot be reached`, {
      hint: `Remove it with \`aido destroy ${sandboxId}\` and make it anew.`,
      details: { sandboxId },
      cause,
    });
  }

  async usage(sandboxId: string): Promise<ContainerUsage> {
    const { containerId } = await this.#index.get(sandboxId);
    return this.#usage.read(sandboxId, containerId);
  }

  async written(sandboxId: string, signal?: AbortSignal): Promise<number | undefined> {
    return writtenBytes(this.#engine, await this.#index.get(sandboxId), signal);
  }

  watch(onEnd: (sandboxId: string) => void, signal: AbortSignal): Promise<void> {
    const either = AbortSignal.any([signal, this.#closing.signal]);
    return watchEnds(this.#engine, this.#options.scope, onEnd, either);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#engine.close();
  }

  #removeNetworks(sandboxId: string, hadContainer: boolean): Promise<void> {
    return removeOwnNetworks(this.#engine, this.#options.scope, sandboxId, { hadContainer });
  }

  #dial(place: Place, signal: AbortSignal): Promise<Duplex> {
    return place.transport === "socket"
      ? connectSocket(this.#socketPath(place.sandboxId), signal)
      : connectExec(this.#engine, place, signal);
  }

  #socketPath(sandboxId: string): string {
    return join(this.#options.runDir(sandboxId), "agent.sock");
  }
}
