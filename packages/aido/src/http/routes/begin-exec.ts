import { posix } from "node:path";
import type { Aido } from "@aido/sdk";
import { AidoError, type ExecInfo, type ExecRequest, isAidoError } from "@aido/sdk/protocol";
import type { ExecBody } from "@aido/sdk/schemas";
import { repeatedExec } from "../../core/exec/failed-start.ts";

/** Starts what a body asks for. The same id again gives the first command and does nothing more. */
export type BeginExec = (sandboxId: string, body: ExecBody, signal: AbortSignal) => Promise<ExecInfo>;

export function beginExec(aido: Aido): BeginExec {
  const beginning = new Map<string, Promise<ExecInfo>>();
  return async (sandboxId, body, signal) => {
    if (body.id === undefined) return begin(aido, sandboxId, body, signal);
    const name = `${sandboxId}/${body.id}`;
    const other = beginning.get(name);
    if (other !== undefined) return repeatedExec(await other, body.command);
    // Whoever repeats the request waits for this one, so its client leaving must not end it.
    const mine = beginOnce(aido, sandboxId, body, body.id).finally(() => beginning.delete(name));
    beginning.set(name, mine);
    return mine;
  };
}

async function beginOnce(aido: Aido, sandboxId: string, body: ExecBody, id: string): Promise<ExecInfo> {
  const known = await aido.execs.get(sandboxId, id).catch((thrown: unknown) => {
    if (isAidoError(thrown, "EXECUTION_NOT_FOUND")) return undefined;
    throw thrown;
  });
  return known === undefined ? begin(aido, sandboxId, body) : repeatedExec(known, body.command);
}

async function begin(aido: Aido, sandboxId: string, body: ExecBody, signal?: AbortSignal): Promise<ExecInfo> {
  const files = Object.entries(body.files ?? {});
  for (const [path] of files) refuseOutside(path);
  if (files.length > 0 && body.autoResume === true) await aido.sandboxes.start(sandboxId, signal);
  for (const [path, content] of files) {
    await aido.files.write(
      sandboxId,
      path,
      Buffer.from(content, "utf8"),
      signal === undefined ? {} : { signal },
    );
  }
  const started = await aido.execs.start(sandboxId, toExecRequest(body), signal);
  await feedStdin(aido, started, body.stdin);
  return started;
}

/** A command's files are part of its workspace; what lies elsewhere is written with PUT …/files, on purpose. */
export function refuseOutside(path: string): void {
  const clean = posix.normalize(path);
  if (!clean.startsWith("/") && clean !== ".." && !clean.startsWith("../")) return;
  throw new AidoError(
    "INVALID_PATH",
    `The file ${JSON.stringify(path.slice(0, 200))} is outside the workspace`,
    {
      hint: "Name files relative to the workspace; PUT /api/sandbox/<id>/files?path=… writes elsewhere.",
    },
  );
}

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
    autoResume: body.autoResume,
  };
}

/** A command need not read its input: one that has ended before it could is no failure. */
async function feedStdin(aido: Aido, exec: ExecInfo, stdin: ExecBody["stdin"]): Promise<void> {
  if (typeof stdin !== "string") return;
  try {
    await aido.execs.writeStdin(exec.sandboxId, exec.id, Buffer.from(stdin, "utf8"));
    await aido.execs.closeStdin(exec.sandboxId, exec.id);
  } catch (thrown) {
    const { status } = await aido.execs.get(exec.sandboxId, exec.id);
    if (status === "running" && !isAidoError(thrown, "EXECUTION_CONFLICT")) throw thrown;
  }
}
