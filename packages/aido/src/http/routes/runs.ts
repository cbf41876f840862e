import { type Aido, FRAMED_BODY, FramedBody, type RunFile, type RunLogs, type UpRequest } from "@aido/sdk";
import { AidoError, type ResourceLimits, type RunRecord, type RunSummary } from "@aido/sdk/protocol";
import {
  okReply,
  pathQuery,
  runLogsQuery,
  runReply,
  runWaitQuery,
  startRunBody,
  summaryReply,
  upBody,
} from "@aido/sdk/schemas";
import { bodyChunks } from "../incoming.ts";
import { type Input, type Operation, operation } from "../operation.ts";
import { type ImageLookup, refuseForeignImage } from "../own-image.ts";
import { ownRun } from "../own-run.ts";
import { ownerLabels, refuseOwnLabels } from "../ownership.ts";
import { type AwsUsers, refusePrivileges } from "../privileges.ts";
import type { RequestContext } from "../request-context.ts";
import { eventStream } from "../streams/event-stream.ts";
import { firstChunkThenStream } from "../streams/first-chunk.ts";
import { runEvents } from "../streams/run-events.ts";

const TAG = "runs";
const ONE = "/api/runs/:run";
const BYTES = "application/octet-stream";
/** What a sandbox has written is never shown as a page of this server. */
const INERT = {
  "content-type": BYTES,
  "x-content-type-options": "nosniff",
  "content-disposition": "attachment",
};

export interface RunRouteDeps {
  /** Of the first frame of a body; files are streamed. */
  maxBodyBytes: number;
  images: ImageLookup;
  awsUsers?: AwsUsers | undefined;
}

export function runRoutes(aido: Aido, deps: RunRouteDeps): Operation[] {
  const own = (input: Pick<Input<undefined, undefined, undefined>, "http" | "request">) =>
    ownRun(aido, input.request, input.http.req.param("run"));

  return [
    operation({
      id: "prepareRun",
      method: "post",
      path: "/api/runs",
      tag: TAG,
      summary:
        "Make a sandbox for runs from a spec and its input files; nothing runs in it yet, unless `start` says what",
      scope: "write",
      rawBody: FRAMED_BODY,
      replies: { 201: { schema: runReply, description: "Its inputs and image are there" } },
      handle: async ({ request, http }) =>
        http.json(await prepare(aido, deps, request, bodyChunks(http)), 201),
    }),
    operation({
      id: "startRun",
      method: "post",
      path: "/api/runs/start",
      tag: TAG,
      summary: "Start a task, or the steps of the spec, in such a sandbox",
      scope: "write",
      rawBody: FRAMED_BODY,
      replies: { 202: { schema: runReply, description: "It has started" } },
      handle: async ({ request, http }) => {
        const body = new FramedBody(bodyChunks(http));
        const { task, ...wanted } = startRunBody.parse(await body.request(deps.maxBodyBytes));
        refusePrivileges(request.principal, startPrivileges(wanted));
        const sandbox = await ownRun(aido, request, wanted.sandbox, { forTask: true });
        const [file] = filesOf(body, task === undefined ? [] : [task]);
        const { signal } = request;
        return http.json(await aido.runs.start({ ...wanted, sandbox, task: file }, { signal }), 202);
      },
    }),
    operation({
      id: "getRun",
      method: "get",
      path: ONE,
      tag: TAG,
      summary: "State of a run; `@newest` stands for the newest",
      scope: "read",
      replies: { 200: { schema: runReply, description: "As run.json has it" } },
      quiet: true,
      handle: async (input) => input.http.json(await aido.runs.get(await own(input))),
    }),
    operation({
      id: "getRunSummary",
      method: "get",
      path: `${ONE}/summary`,
      tag: TAG,
      summary: "How a run ended; `?wait=` milliseconds for it",
      scope: "read",
      query: runWaitQuery,
      replies: { 200: { schema: summaryReply, description: "Null while it has not" } },
      quiet: true,
      handle: async (input) => {
        const id = await own(input);
        const wait = input.query.wait ?? 0;
        const summary =
          wait > 0 ? await waitUpTo(aido, id, wait, input.request) : await aido.runs.summary(id);
        return input.http.json({ summary: summary ?? null });
      },
    }),
    operation({
      id: "streamRunLogs",
      method: "get",
      path: `${ONE}/logs`,
      tag: TAG,
      summary: "Output of a run as server-sent events; with `?follow=true` until it has ended",
      scope: "read",
      query: runLogsQuery,
      replies: { 200: { contentType: "text/event-stream", description: "Events `output`, then one `end`" } },
      quiet: true,
      handle: async (input) => {
        const { follow, step, stdoutOffset, stderrOffset, startedAt } = input.query;
        const id = await own(input);
        if (startedAt !== undefined) await refuseOther(aido, id, startedAt);
        const asked: RunLogs = { sandbox: id, follow: follow === "true" };
        if (step !== undefined || stdoutOffset !== undefined || stderrOffset !== undefined) {
          asked.from = { step, stdoutOffset: stdoutOffset ?? 0, stderrOffset: stderrOffset ?? 0 };
        }
        return eventStream((signal) => runEvents(aido, asked, signal), input.request);
      },
    }),
    operation({
      id: "readRunOutput",
      method: "get",
      path: `${ONE}/outputs`,
      tag: TAG,
      summary: "A file that a run has left, by its name in the summary's outputFiles",
      scope: "read",
      query: pathQuery,
      replies: { 200: { contentType: BYTES, description: "Its bytes" } },
      handle: async (input) => {
        const id = await own(input);
        const content = await firstChunkThenStream(
          (signal) => aido.runs.output(input.query.path, id, signal),
          input.request.signal,
        );
        return new Response(content, { headers: INERT });
      },
    }),
    operation({
      id: "cancelRun",
      method: "post",
      path: `${ONE}/cancel`,
      tag: TAG,
      summary: "End what a run executes; it then finishes as failed",
      scope: "write",
      replies: { 200: { schema: okReply, description: "Asked, or nothing ran" } },
      handle: async (input) => {
        await aido.runs.cancel(await own(input));
        return input.http.json({ status: "success" });
      },
    }),
  ];
}

async function prepare(
  aido: Aido,
  deps: RunRouteDeps,
  request: RequestContext,
  source: AsyncIterable<Uint8Array>,
): Promise<RunRecord> {
  const { principal, signal } = request;
  const body = new FramedBody(source);
  const { inputs, tasks, start, ...wanted } = upBody.parse(await body.request(deps.maxBodyBytes));
  refusePrivileges(principal, wanted.spec, deps.awsUsers);
  if (start !== undefined) refusePrivileges(principal, startPrivileges(start));
  await refuseForeignImage(deps.images, principal, wanted.spec.runtime);
  refuseOwnLabels(wanted.labels);
  const files = filesOf(body, [...inputs, ...tasks, ...(start?.task === undefined ? [] : [start.task])]);
  const sent = { inputs: files.splice(0, inputs.length), tasks: files.splice(0, tasks.length) };
  const up: UpRequest = {
    ...wanted,
    spec: { ...wanted.spec, limits: givenLimits(wanted.spec.limits) },
    labels: { ...wanted.labels, ...ownerLabels(principal) },
    ...sent,
    ...(start === undefined ? {} : { start: { ...start, task: files[0] } }),
  };
  const run = await aido.runs.up(up, { signal });
  request.sandboxId = run.id;
  if (!signal.aborted) return run;
  // Nobody hears the id, so nobody could ever use or remove it.
  await aido.sandboxes.destroy(run.id);
  throw new AidoError("CANCELLED", "The client has gone away");
}

function startPrivileges({ privileged, hostNetwork }: NewRunFlags): {
  privileged: boolean | undefined;
  network: "host" | undefined;
} {
  return { privileged, network: hostNetwork === true ? "host" : undefined };
}

type NewRunFlags = { privileged?: boolean | undefined; hostNetwork?: boolean | undefined };

function givenLimits(
  limits: {
    [Limit in keyof ResourceLimits]?: ResourceLimits[Limit] | undefined;
  },
): Partial<ResourceLimits> {
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined));
}

/** Each file reads its own part of the body when it is asked; aido stores them one after the other. */
function filesOf(
  body: FramedBody,
  listed: readonly { path: string; executable?: boolean | undefined }[],
): RunFile[] {
  return listed.map((file) => ({ ...file, content: () => body.file() }));
}

/** Offsets are those of one run; the next run of the same sandbox begins anew. */
async function refuseOther(aido: Aido, id: string, startedAt: string): Promise<void> {
  if ((await aido.runs.get(id)).startedAt === startedAt) return;
  throw new AidoError("EXECUTION_CONFLICT", `Another run has started in sandbox ${id} meanwhile`, {
    hint: "Read its output from the beginning.",
    details: { sandboxId: id },
  });
}

async function waitUpTo(
  aido: Aido,
  id: string,
  ms: number,
  { signal, draining }: RequestContext,
): Promise<RunSummary | undefined> {
  const limit = AbortSignal.any([signal, draining, AbortSignal.timeout(ms)]);
  try {
    return await aido.runs.wait(id, limit);
  } catch (thrown) {
    // The limit passing is the answer "not yet"; anything else is told.
    if (!limit.aborted || signal.aborted) throw thrown;
    return undefined;
  }
}
