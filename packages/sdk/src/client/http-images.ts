import type { Progress } from "../aido.ts";
import type { BuildImage, BuiltImage, ImageInfo, ImageList, Images } from "../images.ts";
import type { ErrorBody } from "../protocol/errors.ts";
import type { ImageReply } from "../schemas/index.ts";
import { lostServer } from "./lost-server.ts";
import { errorFromBody } from "./server-error.ts";
import { serverEvents } from "./server-events.ts";
import type { Transport } from "./transport.ts";

const PATH = "/api/images";

export class HttpImages implements Images {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async list(signal?: AbortSignal): Promise<ImageList> {
    const call = { repeatable: true, signal };
    const reply = await this.#transport.json<{ aliases: ImageList["aliases"]; images: ImageReply[] }>(
      PATH,
      call,
    );
    return { aliases: reply.aliases, images: reply.images.map(toInfo) };
  }

  async pull(
    image: string,
    options: { signal?: AbortSignal; onProgress?: Progress } = {},
  ): Promise<ImageInfo> {
    return toInfo(await this.#ask({ pull: image }, options));
  }

  async build(
    request: BuildImage,
    options: { signal?: AbortSignal; onProgress?: Progress } = {},
  ): Promise<BuiltImage> {
    const { checksum = "", isCached = false, ...image } = await this.#ask(request, options);
    return { ...toInfo(image), checksum, isCached };
  }

  async remove(image: string, signal?: AbortSignal): Promise<void> {
    const call = { method: "DELETE" as const, slow: true, signal };
    await this.#transport.json(`${PATH}/${encodeURIComponent(image)}`, call);
  }

  /** As events, so that steps are told as they happen. A build that lost its server is not repeated: it may go on. */
  async #ask(
    json: object,
    { signal, onProgress }: { signal?: AbortSignal; onProgress?: Progress },
  ): Promise<ImageReply> {
    const headers = { accept: "text/event-stream" };
    const response = await this.#transport.send(PATH, { method: "POST", json, headers, slow: true, signal });
    for await (const { event, data } of serverEvents(response, this.#transport.url, signal)) {
      if (event === "error") throw errorFromBody(data as ErrorBody, 500);
      if (event === "progress") onProgress?.((data as { step: string }).step);
      if (event === "end") return data as ImageReply;
    }
    signal?.throwIfAborted();
    throw lostServer(this.#transport.url, undefined);
  }
}

function toInfo({ createdAt, checksum: _, isCached: __, ...image }: ImageReply): ImageInfo {
  return { ...image, createdAt: createdAt === null ? undefined : new Date(createdAt) };
}
