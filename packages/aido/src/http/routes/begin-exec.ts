import { posix } from "node:path";
import type { Aido } from "@aido/sdk";
import { AidoError, type ExecInfo, type ExecRequest } from "@aido/sdk/protocol";
import type { ExecBody } from "@aido/sdk/schemas";
import { execFingerprint } from "./exec-fingerprint.ts";
import { StdinFeeds } from "./stdin-feeds.ts";

/**
 * Starts what a body asks for; resolves when it has started, however long it takes to read its input. The same id again
 * gives the first command and does nothing more. A client that leaves ends what comes before the command, never itself.
 */
export type BeginExec = (sandboxId: string, body: ExecBody, signal: AbortSignal) => Promise<ExecInfo>;

/** The exec that has the request's id; refused when it is another one. */
export type RepeatedExec = (sandboxId: string, request: ExecRequest) => Promise<ExecInfo | undefined>;

interface Deps {
  aido: Aido;
  feeds: StdinFeeds;
}

export function beginExec(aido: Aido, repeated: RepeatedExec): BeginExec {
  const beginning = new Map<string, Promise<ExecInfo>>();
  const deps = { aido, feeds: new StdinFeeds(aido) };
  return async (sandboxId, body, signal) => {
    if (body.id === undefined) return begin(deps, sandboxId, body, toExecRequest(body), signal);
    const name = `${sandboxId}/${body.id}`;
    const other = beginning.get(name);
    const request = { ...toExecRequest(body), fingerprint: execFingerprint(body) };
    if (other !== undefined) {
      const begun = await other;
      return (await repeated(sandboxId, request)) ?? begun;
    }
    const beginOnce = async () =>
      (await repeated(sandboxId, request)) ?? (await begin(deps, sandboxId, body, request));
    // Whoever repeats the request waits for this one, so its client leaving must not end it.
    const mine = beginOnce().finally(() => beginning.delete(name));
    beginning.set(name, mine);
    return mine;
  };
}

async function begin(
  { aido, feeds }: Deps,
  sandboxId: string,
  body: ExecBody,
  request: ExecRequest,
  signal?: AbortSignal,
): Promise<ExecInfo> {
  const files = Object.entries(body.files ?? {});
  for (const [path] of files) refuseOutside(path);
  if (typeof body.stdin === "string") feeds.admit(sandboxId);
  if (files.length > 0 && body.autoResume === true) await aido.sandboxes.start(sandboxId, signal);
  for (const [path, content] of files) {
    await aido.files.write(
      sandboxId,
      path,
      Buffer.from(content, "utf8"),
      signal === undefined ? {} : { signal },
    );
  }
  signal?.throwIfAborted();
  // From here on it is the sandbox's: aborting the start would kill the command.
  const started = await aido.execs.start(sandboxId, request);
  if (typeof body.stdin === "string") feeds.begin(started, Buffer.from(body.stdin, "utf8"));
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
