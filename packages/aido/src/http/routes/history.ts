import type { Aido, History, HistoryEntry } from "@aido/sdk";
import {
  diffBody,
  diffReply,
  historyQuery,
  historyReply,
  pathQuery,
  rollbackBody,
  rollbackReply,
  treeReply,
} from "@aido/sdk/schemas";
import { type Input, type Operation, operation } from "../operation.ts";
import { requestedSandbox } from "../ownership.ts";

const TAG = "history";
const BASE = "/api/sandbox/:containerId";
const DEFAULT_LIMIT = 10;

export function historyRoutes(aido: Aido, history: History): Operation[] {
  const own = async (input: Pick<Input<undefined, undefined, undefined>, "http" | "request">) =>
    (await requestedSandbox(aido, input.request, input.http.req.param("containerId") ?? "")).id;

  return [
    operation({
      id: "listHistory",
      method: "get",
      path: `${BASE}/history`,
      tag: TAG,
      summary: "Changes of the workspace, newest first, each tied to its exec",
      scope: "read",
      query: historyQuery,
      replies: {
        200: {
          schema: historyReply,
          description: "The last 10 unless a limit is given; go on before the last id",
        },
      },
      quiet: true,
      handle: async (input) => {
        const { limit = DEFAULT_LIMIT, before } = input.query;
        const page = { limit, before, signal: input.request.signal };
        const entries = await history.list(await own(input), page);
        return input.http.json({ history: entries.map(toWire) });
      },
    }),
    operation({
      id: "diff",
      method: "post",
      path: `${BASE}/diff`,
      tag: TAG,
      summary: "What changed between two execs",
      scope: "read",
      body: diffBody,
      replies: { 200: { schema: diffReply, description: "Unified diff text by path" } },
      quiet: true,
      handle: async (input) => {
        const { fromExecId, toExecId } = input.body;
        const diff = await history.diff(await own(input), fromExecId, toExecId, input.request.signal);
        return input.http.json({ diff });
      },
    }),
    operation({
      id: "rollback",
      method: "post",
      path: `${BASE}/rollback`,
      tag: TAG,
      summary: "Put the workspace back to what it was after an exec",
      scope: "write",
      body: rollbackBody,
      replies: { 200: { schema: rollbackReply, description: "The next command sees the old tree" } },
      handle: async (input) => {
        const { executionId } = input.body;
        const entry = await history.rollback(await own(input), executionId, input.request.signal);
        return input.http.json({
          status: "success",
          message: `The workspace is as it was after ${executionId} (${entry.commitId.slice(0, 12)})`,
          entry: toWire(entry),
        });
      },
    }),
    operation({
      id: "historyTree",
      method: "get",
      path: `${BASE}/history/:execId/tree`,
      tag: TAG,
      summary: "Files of the workspace after an exec",
      scope: "read",
      replies: { 200: { schema: treeReply, description: "All of them" } },
      quiet: true,
      handle: async (input) => {
        const files = await history.tree(await own(input), input.http.req.param("execId") ?? "");
        const tree = files.map((file) => ({ ...file, type: file.mode === "120000" ? "symlink" : "file" }));
        return input.http.json({ tree });
      },
    }),
    operation({
      id: "historyFile",
      method: "get",
      path: `${BASE}/history/:execId/file`,
      tag: TAG,
      summary: "A file as it was after an exec",
      scope: "read",
      query: pathQuery,
      replies: { 200: { contentType: "application/octet-stream", description: "Its bytes" } },
      quiet: true,
      handle: async (input) => {
        const content = await history.file(
          await own(input),
          input.http.req.param("execId") ?? "",
          input.query.path,
        );
        return new Response(Uint8Array.from(content), {
          headers: {
            "content-type": "application/octet-stream",
            "x-content-type-options": "nosniff",
            "content-disposition": "attachment",
          },
        });
      },
    }),
  ];
}

function toWire(entry: HistoryEntry) {
  return {
    id: entry.execId,
    commitId: entry.commitId,
    timestamp: toOffsetTime(entry.at),
    message: entry.message,
    files: [...entry.files],
    ...(entry.truncated === true ? { truncated: true } : {}),
  };
}

/** As seed 3 prints it, and git: to the second, with the offset in digits. */
function toOffsetTime(at: Date): string {
  return at.toISOString().replace(/\.\d{3}Z$/, "+00:00");
}
