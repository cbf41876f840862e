import type { Aido } from "@aido/sdk";
import {
  AidoError,
  type CreatedSandbox,
  type CreateSandbox,
  isAidoError,
  SANDBOX_STATES,
  type SandboxInfo,
  type SandboxState,
} from "@aido/sdk/protocol";
import {
  type CreateSandboxBody,
  createdSandboxReply,
  createSandboxBody,
  deletedReply,
  sandboxListQuery,
  sandboxListReply,
  sandboxReply,
  statsReply,
  stopBody,
  timeoutBody,
  tokenBody,
  tokenReply,
} from "@aido/sdk/schemas";
import type { Context } from "hono";
import { z } from "zod";
import { type Idempotency, idempotent } from "../idempotent.ts";
import { type Operation, operation } from "../operation.ts";
import { type ImageLookup, refuseForeignImage } from "../own-image.ts";
import { ownerLabels, refuseOwnLabels, requestedSandbox } from "../ownership.ts";
import { type AwsUsers, refusePrivileges } from "../privileges.ts";
import type { RequestContext } from "../request-context.ts";
import { eventStream } from "../streams/event-stream.ts";
import { statsEvents } from "../streams/stats-events.ts";
import { sandboxToWire, statsToWire, usageToWire } from "../to-wire.ts";
import { keyLabels, leftSandbox } from "./left-sandbox.ts";

const TAG = "sandboxes";
const DEFAULT_PAGE = 100;
const MEMORY_UNITS: Readonly<Record<string, number>> = { "": 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3 };

export interface SandboxRouteDeps {
  idempotency: Idempotency;
  images: ImageLookup;
  awsUsers?: AwsUsers | undefined;
  /** Life of those that name none; 0 leaves it to core. */
  timeoutMs: number;
}

const statsQuery = z.strictObject({ stream: z.enum(["", "true", "false"]).optional() });

export function sandboxRoutes(aido: Aido, deps: SandboxRouteDeps): Operation[] {
  const own = (request: RequestContext, http: Context) =>
    requestedSandbox(aido, request, http.req.param("containerId") ?? "");

  return [
    operation({
      id: "createSandbox",
      method: "post",
      path: "/api/sandbox",
      tag: TAG,
      summary: "Make and start a sandbox",
      scope: "write",
      body: createSandboxBody,
      replies: {
        201: {
          schema: createdSandboxReply,
          description: "It runs and takes commands; the token is shown this once",
        },
      },
      handle: async ({ body, request, http }) => {
        refuseOwnLabels(body.labels);
        refusePrivileges(request.principal, body, deps.awsUsers);
        await refuseForeignImage(deps.images, request.principal, body.image);
        const { owner } = request.principal;
        const key = http.req.header("idempotency-key");
        let made: CreatedSandbox | undefined;
        const asked = { owner, key, operation: "createSandbox", body };
        const answer = (sandbox: CreatedSandbox): Response => {
          request.sandboxId = sandbox.id;
          made = sandbox;
          return http.json(createdToWire(sandbox), 201);
        };
        const own = { ...ownerLabels(request.principal), ...keyLabels(owner, key) };
        const work = async () => {
          const labels = { ...body.labels, ...own };
          const wanted = { ...toCreateSandbox(body, deps.timeoutMs), labels };
          return answer(await aido.sandboxes.create(wanted, { signal: request.signal }));
        };
        const response = await idempotent(deps.idempotency, asked, work, async (since) => {
          const left = await leftSandbox(aido, { labels: own, since, token: body.token });
          return left === undefined ? undefined : answer(left);
        });
        // Put in after the answer was kept for repeated requests: the token itself is stored nowhere.
        if (made?.token === undefined) return response;
        return http.json({ ...createdToWire(made), token: made.token }, 201);
      },
    }),
    operation({
      id: "listSandboxes",
      method: "get",
      path: "/api/sandbox",
      tag: TAG,
      summary: "List your sandboxes, newest first",
      scope: "read",
      query: sandboxListQuery,
      replies: { 200: { schema: sandboxListReply, description: "One page" } },
      quiet: true,
      handle: async ({ query, request, http }) => {
        const limit = query.limit ?? DEFAULT_PAGE;
        const page = await aido.sandboxes.list({
          limit: limit + 1,
          states: statesOf(query.state),
          labels: {
            ...labelsOf(query.label),
            ...(request.principal.scopes.includes("admin") ? {} : ownerLabels(request.principal)),
          },
          ...(query.before === undefined ? {} : { before: query.before }),
        });
        const shown = page.slice(0, limit);
        const next = page.length > limit ? (shown.at(-1)?.id ?? null) : null;
        return http.json({ sandboxes: shown.map(sandboxToWire), next });
      },
    }),
    operation({
      id: "getSandbox",
      method: "get",
      path: "/api/sandbox/:containerId",
      tag: TAG,
      summary: "State and use of a sandbox",
      scope: "read",
      replies: { 200: { schema: sandboxReply, description: "As it is now" } },
      quiet: true,
      handle: async ({ request, http }) => {
        const sandbox = await own(request, http);
        if (sandbox.state !== "running") return http.json(sandboxToWire(sandbox));
        const stats = await aido.sandboxes.stats(sandbox.id).catch((thrown: unknown) => {
          // It ended since it was looked up; the next look shows how.
          if (isAidoError(thrown, "CONTAINER_NOT_RUNNING") || isAidoError(thrown, "CONTAINER_LOST")) return;
          throw thrown;
        });
        if (stats === undefined) return http.json(sandboxToWire(await own(request, http)));
        return http.json({
          ...sandboxToWire(sandbox),
          resourceUsage: usageToWire(stats, sandbox.startedAt),
        });
      },
    }),
    operation({
      id: "deleteSandbox",
      method: "delete",
      path: "/api/sandbox/:containerId",
      tag: TAG,
      summary: "End a sandbox and remove all but its evidence",
      scope: "write",
      replies: { 200: { schema: deletedReply, description: "It is gone" } },
      handle: async ({ request, http }) => {
        const sandbox = await own(request, http);
        await aido.sandboxes.destroy(sandbox.id, request.signal);
        return http.json({ status: "deleted", containerId: sandbox.id });
      },
    }),
    operation({
      id: "stopSandbox",
      method: "post",
      path: "/api/sandbox/:containerId/stop",
      tag: TAG,
      summary: "End its processes; its files stay",
      scope: "write",
      body: stopBody,
      replies: { 200: { schema: sandboxReply, description: "It is stopped" } },
      handle: async ({ body, request, http }) => {
        const sandbox = await own(request, http);
        const stopped = await aido.sandboxes.stop(sandbox.id, {
          signal: request.signal,
          ...(body.graceMs === undefined ? {} : { graceMs: body.graceMs }),
        });
        return http.json(sandboxToWire(stopped));
      },
    }),
    ...(["start", "resume"] as const).map((verb) =>
      operation({
        id: `${verb}Sandbox`,
        method: "post",
        path: `/api/sandbox/:containerId/${verb}`,
        tag: TAG,
        summary: "Start a stopped sandbox again, with its files",
        scope: "write",
        replies: { 200: { schema: sandboxReply, description: "It runs" } },
        handle: async ({ request, http }) => {
          const sandbox = await own(request, http);
          return http.json(sandboxToWire(await aido.sandboxes.start(sandbox.id, request.signal)));
        },
      }),
    ),
    operation({
      id: "setSandboxTimeout",
      method: "post",
      path: "/api/sandbox/:containerId/timeout",
      tag: TAG,
      summary: "Set how long it lives from now on; 0 means no end",
      scope: "write",
      body: timeoutBody,
      replies: { 200: { schema: sandboxReply, description: "With its new expiry" } },
      handle: async ({ body, request, http }) => {
        const sandbox = await own(request, http);
        return http.json(sandboxToWire(await aido.sandboxes.setTtl(sandbox.id, body.timeout)));
      },
    }),
    operation({
      id: "issueSandboxToken",
      method: "post",
      path: "/api/sandbox/:containerId/token",
      tag: TAG,
      summary: "Give its sidecar API a new token; the one before opens nothing any more",
      scope: "write",
      body: tokenBody,
      replies: { 200: { schema: tokenReply, description: "The token is shown this once" } },
      handle: async ({ body, request, http }) => {
        const { id } = await own(request, http);
        const { sandboxId, ...access } = await aido.sandboxes.issueToken(id, body.token);
        return http.json({ containerId: sandboxId, ...access });
      },
    }),
    operation({
      id: "getSandboxStats",
      method: "get",
      path: "/api/sandbox/:containerId/stats",
      tag: TAG,
      summary: "Processor time, memory and processes; with `?stream` every second as server-sent events",
      scope: "read",
      query: statsQuery,
      replies: { 200: { schema: statsReply, description: "Now, or events `stats` until the sandbox ends" } },
      quiet: true,
      handle: async ({ query, request, http }) => {
        const sandbox = await own(request, http);
        const stats = statsToWire(await aido.sandboxes.stats(sandbox.id));
        if (query.stream === undefined || query.stream === "false") return http.json(stats);
        return eventStream((signal) => statsEvents(aido, sandbox.id, stats, signal), request);
      },
    }),
  ];
}

function createdToWire(sandbox: SandboxInfo) {
  return { ...sandboxToWire(sandbox), status: "created" as const };
}

/** The wire's units (text with k, m, g; milliseconds) become bytes and numbers here and nowhere else. */
export function toCreateSandbox(body: CreateSandboxBody, timeoutMs: number): CreateSandbox {
  const { options, image, ...rest } = body;
  const limits = { ...rest.limits };
  if (options?.memoryLimit !== undefined) limits.memoryBytes = memoryBytes(options.memoryLimit);
  if (options?.cpuLimit !== undefined) limits.cpus = Number(options.cpuLimit);
  const profile = rest.profile ?? "server";
  // A sidecar's life is the operator's to set.
  const unnamed = profile === "sidecar" || timeoutMs === 0 ? undefined : timeoutMs;
  return {
    ...rest,
    profile,
    history: rest.history ?? true,
    image: image ?? (rest.profile === "sidecar" ? undefined : "bash"),
    limits,
    ttlMs: rest.ttlMs ?? options?.timeout ?? unnamed,
  };
}

function memoryBytes(text: string): number {
  const unit = /[kmg]$/i.exec(text)?.[0].toLowerCase() ?? "";
  const bytes = Number.parseInt(text, 10) * (MEMORY_UNITS[unit] ?? 1);
  if (!Number.isSafeInteger(bytes) || bytes < 6 * 1024 * 1024) {
    throw new AidoError("INVALID_MEMORY_LIMIT", `A sandbox needs at least 6m of memory, not ${text}`);
  }
  return bytes;
}

function statesOf(text: string | undefined): readonly SandboxState[] {
  if (text === undefined) return ["pending", "running", "stopped"];
  return text.split(",").map((word) => {
    const state = SANDBOX_STATES.find((known) => known === word);
    if (state === undefined) {
      throw new AidoError("VALIDATION_ERROR", `There is no state ${word}`, {
        hint: `There are ${SANDBOX_STATES.join(", ")}.`,
      });
    }
    return state;
  });
}

function labelsOf(given: string | readonly string[] | undefined): Record<string, string> {
  const pairs = given === undefined ? [] : typeof given === "string" ? [given] : given;
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      if (at <= 0) throw new AidoError("VALIDATION_ERROR", `A label filter is name=value, not ${pair}`);
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}
