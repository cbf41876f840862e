import { AidoError, isAidoError } from "@aido/sdk/protocol";
import type Docker from "dockerode";
import type { CommittedImage } from "../../core/driver/driver.ts";
import { checkImageName } from "./check-image-name.ts";
import type { Place } from "./container-index.ts";
import type { Engine } from "./engine.ts";
import { LABEL } from "./labels.ts";

/** The engine reads and writes all that the sandbox has changed. */
const COMMIT_LIMIT_MS = 30 * 60_000;
const CONFLICT = 409;

/**
 * Images of one scope that hold the files of sandboxes. A commit takes over the labels of its container, which is
 * how they are found; the name is for people, and ends with the scope so that no other installation's commit takes
 * it away. An image that lost its name would go with the next `docker image prune`.
 */
export class CommittedImages {
  readonly #engine: Engine;
  readonly #scope: string;

  constructor(engine: Engine, scope: string) {
    this.#engine = engine;
    this.#scope = scope;
  }

  async commit(place: Place, signal?: AbortSignal): Promise<CommittedImage> {
    const { sandboxId, containerId } = place;
    const container = this.#engine.docker.getContainer(containerId);
    const action = { doing: "keeping the sandbox's files as an image", sandboxId } as const;
    refuseUnfit(await this.#engine.call(action, () => container.inspect(), { signal }), sandboxId);
    const query = { container: containerId, repo: repositoryOf(sandboxId), tag: this.#scope, pause: true };
    const made = await this.#engine.call(
      action,
      // Named apart, for otherwise the query would also be sent as the image's configuration.
      (abortSignal) => container.commit({ _query: query, _body: {}, abortSignal } as object),
      { signal, timeoutMs: COMMIT_LIMIT_MS },
    );
    const reference = String((made as { Id: string }).Id);
    const found = await this.#inspect(reference);
    if (found !== undefined) return toCommitted(reference, found);
    throw new AidoError("IMAGE_NOT_FOUND", `The image of sandbox ${sandboxId} was removed as it was made`);
  }

  async remove(reference: string): Promise<boolean> {
    checkImageName(reference);
    const found = await this.#inspect(reference);
    if (found === undefined) return true;
    const labels = found.Config.Labels ?? {};
    if (labels[LABEL.sandbox] === undefined || labels[LABEL.scope] !== this.#scope) throw notOurs(reference);
    try {
      const image = this.#engine.docker.getImage(found.Id);
      await this.#engine.call({ doing: `removing image ${reference}`, image: reference }, (abortSignal) =>
        image.remove({ abortSignal } as object),
      );
      return true;
    } catch (thrown) {
      if (isAidoError(thrown, "IMAGE_NOT_FOUND")) return true;
      const cause =
        thrown instanceof Error ? (thrown.cause as { statusCode?: number } | undefined) : undefined;
      if (cause?.statusCode === CONFLICT) return false;
      throw thrown;
    }
  }

  /** All of them: one that a later commit took the name from is hidden otherwise. */
  async list(sandboxId: string | undefined): Promise<readonly CommittedImage[]> {
    const label = sandboxId === undefined ? LABEL.sandbox : `${LABEL.sandbox}=${sandboxId}`;
    const filters = { label: [label, `${LABEL.scope}=${this.#scope}`] };
    const found = await this.#engine.call({ doing: "listing the images of sandboxes" }, (abortSignal) =>
      this.#engine.docker.listImages({ all: true, filters: JSON.stringify(filters), abortSignal } as object),
    );
    return found
      .toSorted((a, b) => b.Created - a.Created)
      .map((image) => ({
        reference: image.Id,
        sandboxId: image.Labels?.[LABEL.sandbox] ?? "",
        createdAt: new Date(image.Created * 1000),
        bytes: image.Size,
      }));
  }

  async #inspect(reference: string): Promise<Docker.ImageInspectInfo | undefined> {
    try {
      return await this.#engine.call(
        { doing: `looking for image ${reference}`, image: reference },
        (abortSignal) => this.#engine.docker.getImage(reference).inspect({ abortSignal } as object),
      );
    } catch (thrown) {
      if (isAidoError(thrown, "IMAGE_NOT_FOUND")) return undefined;
      throw thrown;
    }
  }
}

/** Files change while it runs, and what lies in a volume is in no image: both would be lost with the container. */
function refuseUnfit(raw: Docker.ContainerInspectInfo, sandboxId: string): void {
  if (raw.State.Running) {
    throw new AidoError("CONTAINER_BUSY", `Sandbox ${sandboxId} runs, and its files may change`, {
      hint: "Stop it first.",
      details: { id: sandboxId },
    });
  }
  const volume = raw.Mounts.find((mount) => (mount as { Type?: string }).Type === "volume");
  if (volume === undefined) return;
  throw new AidoError(
    "UNSUPPORTED",
    `The image of sandbox ${sandboxId} keeps ${volume.Destination} in a volume, which no image can hold`,
    { hint: "It stays as a stopped container. Use an image without VOLUME.", details: { id: sandboxId } },
  );
}

function repositoryOf(sandboxId: string): string {
  const component = sandboxId
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "");
  return `sandbox-snapshot/${component || "sandbox"}`;
}

function toCommitted(reference: string, found: Docker.ImageInspectInfo): CommittedImage {
  return {
    reference,
    sandboxId: found.Config.Labels?.[LABEL.sandbox] ?? "",
    // As in listings, which count seconds.
    createdAt: new Date(Math.floor(Date.parse(found.Created) / 1000) * 1000),
    bytes: found.Size,
  };
}

function notOurs(reference: string): AidoError {
  return new AidoError("FORBIDDEN", `${reference} is no image that aido made of one of its sandboxes`, {
    hint: "Remove it with `docker rmi` if it is yours.",
    details: { image: reference },
  });
}
