import type { ImageInfo, Progress } from "@aido/sdk";
import { AidoError } from "@aido/sdk/protocol";
import { type ImageReply, imageBody, imageDeletedReply, imageListReply, imageReply } from "@aido/sdk/schemas";
import type { z } from "zod";
import type { ImageService } from "../../core/image/image-service.ts";
import type { Principal } from "../auth/principal.ts";
import { type Operation, operation } from "../operation.ts";
import { maySee, noImage, refuseForeignImage } from "../own-image.ts";
import { ownerLabels, publicLabels, refuseOwnLabels } from "../ownership.ts";
import type { RequestContext } from "../request-context.ts";
import { eventStream } from "../streams/event-stream.ts";
import { progressEvents } from "../streams/progress-events.ts";

const TAG = "images";
const PATH = "/api/images";
const EVENTS = "text/event-stream";

export interface ImageRouteDeps {
  images: ImageService;
  /** Which keys may build: a build's commands have weaker walls than a sandbox. */
  builders: "admin" | "write" | "nobody";
}

type Body = z.infer<typeof imageBody>;
type Work = (options: { signal: AbortSignal; onProgress?: Progress }) => Promise<ImageReply>;

export function imageRoutes({ images, builders }: ImageRouteDeps): Operation[] {
  return [
    operation({
      id: "listImages",
      method: "get",
      path: PATH,
      tag: TAG,
      summary: "Short names of images, and the images that are here",
      scope: "read",
      replies: { 200: { schema: imageListReply, description: "Builds of others are left out" } },
      quiet: true,
      handle: async ({ request, http }) => {
        const list = await images.list(request.signal);
        const shown = list.images.filter((image) => maySee(request.principal, image));
        return http.json({ aliases: list.aliases, images: shown.map(toWire) });
      },
    }),
    operation({
      id: "makeImage",
      method: "post",
      path: PATH,
      tag: TAG,
      summary: "Pull an image, or build one from a Dockerfile or a list of packages",
      scope: "write",
      body: imageBody,
      replies: {
        200: {
          schema: imageReply,
          description:
            "It is here. With `accept: text/event-stream` events `progress` and at last `end` or `error`",
        },
      },
      handle: async ({ body, request, http }) => {
        const work =
          "pull" in body ? await pull(images, body, request) : await build(images, builders, body, request);
        if (http.req.header("accept")?.includes(EVENTS) !== true) {
          return http.json(await work({ signal: AbortSignal.any([request.signal, request.draining]) }));
        }
        return eventStream(
          (over) => progressEvents((onProgress, signal) => work({ onProgress, signal }), over),
          request,
        );
      },
    }),
    operation({
      id: "deleteImage",
      method: "delete",
      path: `${PATH}/:ref`,
      tag: TAG,
      summary: "Remove an image that you have built; its name is one part of the path, encoded",
      scope: "write",
      replies: { 200: { schema: imageDeletedReply, description: "It is gone" } },
      handle: async ({ request, http }) => {
        const ref = http.req.param("ref") ?? "";
        const image = await images.find(ref, request.signal);
        if (!maySee(request.principal, image)) throw noImage(ref);
        await images.remove(ref, request.signal);
        return http.json({ status: "deleted", ref: image.ref });
      },
    }),
  ];
}

async function pull(
  images: ImageRouteDeps["images"],
  body: Extract<Body, { pull: string }>,
  { principal }: RequestContext,
): Promise<Work> {
  await refuseForeignImage(images, principal, body.pull);
  return async (options) => toWire(await images.pull(body.pull, options));
}

async function build(
  images: ImageRouteDeps["images"],
  builders: ImageRouteDeps["builders"],
  body: Exclude<Body, { pull: string }>,
  { principal }: RequestContext,
): Promise<Work> {
  refuseBuilders(principal, builders);
  refuseOwnLabels(body.labels);
  const labels = { ...body.labels, ...ownerLabels(principal) };
  const mayUse = (base: string) => refuseForeignImage(images, principal, base);
  return async (options) => {
    const { checksum, isCached, ...image } = await images.build({ ...body, labels }, { ...options, mayUse });
    return { ...toWire(image), checksum, isCached };
  };
}

function refuseBuilders(principal: Principal, builders: ImageRouteDeps["builders"]): void {
  if (builders === "write" || (builders === "admin" && principal.scopes.includes("admin"))) return;
  throw new AidoError("FORBIDDEN", "This key may not build images", {
    hint:
      builders === "nobody"
        ? "The server builds none: its setting images.builders says so."
        : "It needs the scope admin, or the server's setting images.builders must be write.",
  });
}

function toWire({ createdAt, labels, tags, ...image }: ImageInfo): ImageReply {
  return {
    ...image,
    tags: [...tags],
    createdAt: createdAt?.toISOString() ?? null,
    labels: publicLabels(labels),
  };
}
