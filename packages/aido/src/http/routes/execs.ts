import { type Aido, runExec } from "@aido/sdk";
import type { ExecInfo, ExecRequest, OutputRange } from "@aido/sdk/protocol";
import {
  type ExecBody,
  execBody,
  execListReply,
  execOutputQuery,
  execReply,
  okReply,
  resizeBody,
  signalBody,
} from "@aido/sdk/schemas";
import type { Context } from "hono";
import { type Operation, operation } from "../operation.ts";
import { ownSandbox } from "../ownership.ts";
import { eventStream } from "../streams/event-stream.ts";
import { execEvents } from "../streams/exec-events.ts";
import { execOutcome, execToWire } from "../to-wire.ts";

const TAG = "execs";
/** Of each stream in one answer; the rest is read by offset. */
export const MAX_REPLY_BYTES = 8 * 1024 * 1024;
const PATH = "/api/sandbox/:containerId/exec/:execId";

export function execRoutes(aido: Aido): Operation[] {
  const own = (http: Context, input: { request: { principal: Parameters<typeof ownSandbox>[1] } }) =>
    ownSandbox(aido, input.request.principal, http.req.param("containerId") ?? "");
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
        const sandbox = await ownSandbox(aido, request.principal, body.containerId);
        for (const [path, content] of Object.entries(body.files ?? {})) {
          await aido.files.write(sandbox.id, path, Buffer.from(content, "utf8"), { signal: request.signal });
        }
        const exec = toExecRequest(body);
        if (body.background === true) {
          const started = await aido.execs.start(sandbox.id, exec, request.signal);
          await feedStdin(aido, started, body.stdin);
          return http.json({ ...execToWire(started), status: "running", ...NO_OUTPUT }, 202);
        }
        return http.json(await runToEnd(aido, sandbox.id, exec, body.stdin, request.signal));
      },
    }),
    operation({
      id: "listExecs",
      method: "get",
      path: "/api/sandbox/:containerId/exec",
      tag: TAG,
      summary: "Commands of a sandbox, newest first",
      scope: "read",
      replies: { 200: { schema: execListReply, description: "All that are recorded" } },
      quiet: true,
      handle: async (input) => {
        const sandbox = await own(input.http, input);
        const execs = await aido.execs.list(sandbox.id);
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
          await waitUpTo(aido, sandbox.id, execId, input.query.wait, input.request.signal);
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
        return eventStream(execEvents(aido, info, resumed, input.request.signal), input.request);
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
      rawBody: "application/octet-stream",
      replies: { 200: { schema: okReply, description: "The sandbox has taken the bytes" } },
      quiet: true,
      handle: async (input) => {
        const sandbox = await own(input.http, input);
        const execId = execIdOf(input.http);
        const body = input.http.req.raw.body as AsyncIterable<Uint8Array> | null;
        if (body !== null) {
          for await (const chunk of body)
            await aido.execs.writeStdin(sandbox.id, execId, chunk, input.request.signal);
        }
        if (input.http.req.query("close") === "true") await aido.execs.closeStdin(sandbox.id, execId);
        return input.http.json({ status: "success" });
      },
    }),
  ];
}

const NO_OUTPUT = { stdout: "", stderr: "", stdoutOffset: 0, stderrOffset: 0 };

function toExecRequest(body: ExecBody): ExecRequest {
  return {
    argv: body.command,
    id: body.id,
    env: body.env,
    cwd: body.cwd,
    user: body.user,
    pty: body.pty,
    stdin: body.stdin !== undefined && body.stdin !== false,
    timeoutMs: body.timeout,
    killGraceMs: body.killGrace,
    history: body.gitTracking,
  };
}

async function feedStdin(aido: Aido, exec: ExecInfo, stdin: ExecBody["stdin"]): Promise<void> {
  if (typeof stdin !== "string") return;
  await aido.execs.writeStdin(exec.sandboxId, exec.id, Buffer.from(stdin, "utf8"));
  await aido.execs.closeStdin(exec.sandboxId, exec.id);
}

/** A client that goes away stops waiting; the command goes on and its output is recorded. */
async function runToEnd(
  aido: Aido,
  sandbox: string,
  exec: ExecRequest,
  stdin: ExecBody["stdin"],
  signal: AbortSignal,
) {
  if (typeof stdin === "string") {
    const started = await aido.execs.start(sandbox, exec, signal);
    await feedStdin(aido, started, stdin);
    const info = await aido.execs.wait(sandbox, started.id, signal);
    return {
      ...execToWire(info),
      ...execOutcome(info),
      ...(await readOutput(aido, info, {}, "utf8", signal)),
    };
  }
  const done = await runExec(aido.execs, sandbox, exec, { maxBytes: MAX_REPLY_BYTES, signal });
  return {
    ...execToWire(done.info),
    ...execOutcome(done.info),
    stdout: Buffer.from(done.stdout).toString("utf8"),
    stderr: Buffer.from(done.stderr).toString("utf8"),
    stdoutOffset: done.stdout.length,
    stderrOffset: done.stderr.length,
    ...(done.truncated.stdout || done.truncated.stderr ? { truncated: true } : {}),
  };
}

async function readOutput(
  aido: Aido,
  info: ExecInfo,
  range: OutputRange,
  encoding: "utf8" | "base64",
  signal: AbortSignal,
) {
  const parts = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] };
  const next = { stdout: range.stdoutOffset ?? 0, stderr: range.stderrOffset ?? 0 };
  const left = { stdout: MAX_REPLY_BYTES, stderr: MAX_REPLY_BYTES };
  let truncated = false;
  const asked = { stdoutOffset: next.stdout, stderrOffset: next.stderr };
  for await (const chunk of aido.execs.output(info.sandboxId, info.id, asked, signal)) {
    const kept = chunk.data.subarray(0, left[chunk.stream]);
    truncated ||= kept.length < chunk.data.length;
    parts[chunk.stream].push(Uint8Array.from(kept));
    left[chunk.stream] -= kept.length;
    next[chunk.stream] += kept.length;
    if (left.stdout === 0 && left.stderr === 0) break;
  }
  return {
    stdout: Buffer.concat(parts.stdout).toString(encoding),
    stderr: Buffer.concat(parts.stderr).toString(encoding),
    stdoutOffset: next.stdout,
    stderrOffset: next.stderr,
    ...(truncated ? { truncated } : {}),
  };
}

async function waitUpTo(
  aido: Aido,
  sandbox: string,
  execId: string,
  ms: number,
  signal: AbortSignal,
): Promise<void> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(ms)]);
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
