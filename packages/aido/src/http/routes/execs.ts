import type { Aido } from "@aido/sdk";
import { AidoError, type OutputRange } from "@aido/sdk/protocol";
import {
  execBody,
  execListQuery,
  execListReply,
  execOutputQuery,
  execReply,
  okReply,
  resizeBody,
  signalBody,
} from "@aido/sdk/schemas";
import type { Context } from "hono";
import { z } from "zod";
import { mustHaveStarted } from "../../core/exec/failed-start.ts";
import { bindKey, type Idempotency } from "../idempotent.ts";
import { bodyChunks } from "../incoming.ts";
import { type Operation, operation } from "../operation.ts";
import { requestedSandbox, type SandboxLookup } from "../ownership.ts";
import type { RequestContext } from "../request-context.ts";
import { eventStream, type ServerEvent } from "../streams/event-stream.ts";
import { execEvents } from "../streams/exec-events.ts";
import { execOutcome, execToWire } from "../to-wire.ts";
import { beginExec, type RepeatedExec } from "./begin-exec.ts";
import { readOutput } from "./exec-output.ts";

const TAG = "execs";
const stdinQuery = z.strictObject({ close: z.enum(["true", "false"]).optional() });
const PATH = "/api/sandbox/:containerId/exec/:execId";

export interface ExecRouteDeps {
  known: SandboxLookup;
  idempotency: Idempotency;
  repeated: RepeatedExec;
}

export function execRoutes(aido: Aido, { known, idempotency, repeated }: ExecRouteDeps): Operation[] {
  const begin = beginExec(aido, repeated);
  const own = (http: Context, input: { request: RequestContext }) =>
    requestedSandbox(known, input.request, http.req.param("containerId") ?? "");
  const execIdOf = (http: Context): string => http.req.param("execId") ?? "";

  return [
    operation({
      id: "exec",
      method: "post",
      path: "/api/sandbox/exec",
      tag: TAG,
      summary: "Run a command, after writing the given files",
      scope: "write",
      body: execBody,
      replies: {
        200: { schema: execReply, description: "It has ended; a non-zero exit is status `error`" },
        202: { schema: execReply, description: "It runs in the background" },
      },
      handle: async ({ body, request, http }) => {
        const sandbox = await requestedSandbox(known, request, body.containerId);
        const key = http.req.header("idempotency-key");
        const { owner } = request.principal;
        const bound = await bindKey(idempotency, { owner, key, operation: "exec", body });
        if (bound?.isRepeated === true) http.header("idempotency-replayed", "true");
        const started = await begin(sandbox.id, { ...body, id: body.id ?? bound?.id }, request.signal);
        if (body.background === true) {
          return http.json({ ...execToWire(started), ...execOutcome(started), ...NO_OUTPUT }, 202);
        }
        // A client that goes away stops waiting; the command goes on and its output is recorded.
        const info = mustHaveStarted(await aido.execs.wait(sandbox.id, started.id, request.signal));
        const output = await readOutput(aido, info, {}, "utf8", request.signal);
        return http.json({ ...execToWire(info), ...execOutcome(info), ...output });
      },
    }),
    operation({
      id: "listExecs",
      method: "get",
      path: "/api/sandbox/:containerId/exec",
      tag: TAG,
      summary: "Commands of a sandbox, newest first",
      scope: "read",
      query: execListQuery,
      replies: { 200: { schema: execListReply, description: "At most 1000; go on before the last id" } },
      quiet: true,
      handle: async (input) => {
        const sandbox = await own(input.http, input);
        const execs = await aido.execs.list(sandbox.id, input.query);
        return input.http.json({ execs: execs.map(execToWire) });
      },
    }),
    operation({
      id: "getExec",
      method: "get",
      path: PATH,
      tag: TAG,
      summary: "State of a command and its output from the given offsets",
      scope: "read",
      query: execOutputQuery,
      replies: { 200: { schema: execReply, description: "With the offsets where the next read goes on" } },
      quiet: true,
      handle: async (input) => {
        const sandbox = await own(input.http, input);
        const execId = execIdOf(input.http);
        if (input.query.wait !== undefined && input.query.wait > 0) {
          await waitUpTo(aido, sandbox.id, execId, input.query.wait, input.request);
        }
        const info = await aido.execs.get(sandbox.id, execId);
        const output = await readOutput(
          aido,
          info,
          input.query,
          input.query.encoding ?? "utf8",
          input.request.signal,
        );
        return input.http.json({ ...execToWire(info), ...execOutcome(info), ...output });
      },
    }),
    operation({
      id: "streamExec",
      method: "get",
      path: `${PATH}/stream`,
      tag: TAG,
      summary: "Live output as server-sent events, from the given offsets to the end",
      scope: "read",
      query: execOutputQuery,
      replies: { 200: { contentType: "text/event-stream", description: "Events `output`, then one `end`" } },
      quiet: true,
      handle: async (input) => {
        const sandbox = await own(input.http, input);
        const info = await aido.execs.get(sandbox.id, execIdOf(input.http));
        const resumed = offsetsOfEventId(input.http.req.header("last-event-id")) ?? input.query;
        return eventStream((signal) => execEvents(aido, info, resumed, signal), input.request);
      },
    }),
    operation({
      id: "openExecSocket",
      method: "get",
      path: `${PATH}/ws`,
      tag: TAG,
      summary: "WebSocket: output from the given offsets, and messages stdin, closeStdin, resize, signal",
      scope: "write",
      query: execOutputQuery,
      replies: {
        101: { description: "Messages `output`, then one `end`; binary messages are standard input" },
      },
      quiet: true,
      handle: () => {
        throw new AidoError("VALIDATION_ERROR", "This path speaks WebSocket", {
          hint: "Connect with a WebSocket client, or read …/stream for server-sent events.",
        });
      },
    }),
    operation({
      id: "signalExec",
      method: "post",
      path: `${PATH}/signal`,
      tag: TAG,
      summary: "Signal every process of a command; TERM becomes KILL after the grace",
      scope: "write",
      body: signalBody,
      replies: { 200: { schema: okReply, description: "Sent" } },
      handle: async (input) => {
        const sandbox = await own(input.http, input);
        await aido.execs.kill(sandbox.id, execIdOf(input.http), {
          ...(input.body.signal === undefined ? {} : { signal: input.body.signal }),
          ...(input.body.graceMs === undefined ? {} : { graceMs: input.body.graceMs }),
        });
        return input.http.json({ status: "success" });
      },
    }),
    operation({
      id: "resizeExec",
      method: "post",
      path: `${PATH}/resize`,
      tag: TAG,
      summary: "Change the size of a command's terminal",
      scope: "write",
      body: resizeBody,
      replies: { 200: { schema: okReply, description: "Done" } },
      quiet: true,
      handle: async (input) => {
        const sandbox = await own(input.http, input);
        await aido.execs.resize(sandbox.id, execIdOf(input.http), input.body);
        return input.http.json({ status: "success" });
      },
    }),
    operation({
      id: "writeExecStdin",
      method: "post",
      path: `${PATH}/stdin`,
      tag: TAG,
      summary: "Write the body to a command's standard input; `?close=true` ends it",
      scope: "write",
      query: stdinQuery,
      rawBody: "application/octet-stream",
      replies: {
        200: {
          schema: okReply,
          description: "The sandbox has taken the bytes; said as an event `end` to who accepts events",
        },
      },
      quiet: true,
      handle: async (input) => {
        const sandbox = await own(input.http, input);
        const execId = execIdOf(input.http);
        const write = async (signal: AbortSignal): Promise<void> => {
          for await (const chunk of bodyChunks(input.http)) {
            await aido.execs.writeStdin(sandbox.id, execId, chunk, signal);
          }
          if (input.query.close === "true") await aido.execs.closeStdin(sandbox.id, execId, signal);
        };
        // A command may take as long as it likes to read, longer than clients and proxies wait for a first byte.
        if (acceptsEvents(input.http))
          return eventStream((signal) => endOf(() => write(signal)), input.request);
        await write(input.request.signal);
        return input.http.json({ status: "success" });
      },
    }),
  ];
}

function acceptsEvents(http: Context): boolean {
  return (http.req.header("accept") ?? "").includes("text/event-stream");
}

async function* endOf(work: () => Promise<void>): AsyncGenerator<ServerEvent> {
  await work();
  yield { event: "end", data: {} };
}

const NO_OUTPUT = { stdout: "", stderr: "", stdoutOffset: 0, stderrOffset: 0 };

async function waitUpTo(
  aido: Aido,
  sandbox: string,
  execId: string,
  ms: number,
  { signal, draining }: RequestContext,
): Promise<void> {
  const limit = AbortSignal.any([signal, draining, AbortSignal.timeout(ms)]);
  try {
    await aido.execs.wait(sandbox, execId, limit);
  } catch (thrown) {
    // The limit passing is the answer "still running"; anything else is told.
    if (!limit.aborted || signal.aborted) throw thrown;
  }
}

/** Event ids are `stdout:stderr` offsets, so a browser's own reconnect goes on where it was. */
function offsetsOfEventId(id: string | undefined): OutputRange | undefined {
  const match = /^(\d{1,15}):(\d{1,15})$/.exec(id ?? "");
  return match === null ? undefined : { stdoutOffset: Number(match[1]), stderrOffset: Number(match[2]) };
}
