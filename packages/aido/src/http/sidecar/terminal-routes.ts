import type { SidecarTerminal } from "@aido/sdk/schemas";
import {
  sidecarDoneReply,
  sidecarExecuteBody,
  sidecarInputBody,
  sidecarResizeBody,
  sidecarStreamQuery,
  sidecarTerminalBody,
  sidecarTerminalReply,
  sidecarTerminalsReply,
} from "@aido/sdk/schemas";
import type { Context } from "hono";
import type { Operation } from "../operation.ts";
import { eventStream } from "../streams/event-stream.ts";
import { sandboxIdOf, sidecarOperation } from "./sidecar-operation.ts";
import type { SidecarDeps } from "./sidecar-routes.ts";
import { terminalEvents } from "./terminal-events.ts";
import { type Terminal, Terminals } from "./terminals.ts";

const PATH = "/terminals/:terminalId";
const SIZE = { rows: 24, cols: 80 };
const DONE = { success: true };

export function terminalRoutes({ aido, runningExecs }: SidecarDeps): Operation[] {
  const terminals = new Terminals(aido, runningExecs);

  return [
    sidecarOperation({
      id: "openSidecarTerminal",
      method: "post",
      path: "/terminals",
      summary: "Open a terminal with a shell",
      body: sidecarTerminalBody,
      replies: { 201: { schema: sidecarTerminalReply, description: "It is open; its output is streamed" } },
      handle: async ({ body, request, http }) => {
        const wanted = {
          name: body.title ?? body.name ?? "",
          shell: body.shell,
          cwd: body.cwd,
          env: body.env ?? {},
          size: { rows: body.rows ?? SIZE.rows, cols: body.cols ?? SIZE.cols },
        };
        const terminal = await terminals.open(sandboxIdOf(http), wanted, request.signal);
        return http.json({ success: true, data: toWire(terminal) }, 201);
      },
    }),
    sidecarOperation({
      id: "listSidecarTerminals",
      method: "get",
      path: "/terminals",
      summary: "Terminals that are open, oldest first",
      replies: { 200: { schema: sidecarTerminalsReply, description: "Those of earlier servers too" } },
      quiet: true,
      handle: async ({ http }) => {
        const data = (await terminals.list(sandboxIdOf(http))).map(toWire);
        return http.json({ success: true, data });
      },
    }),
    sidecarOperation({
      id: "getSidecarTerminal",
      method: "get",
      path: PATH,
      summary: "One terminal, open or ended by itself",
      replies: { 200: { schema: sidecarTerminalReply, description: "As it is now" } },
      quiet: true,
      handle: async ({ http }) => {
        const terminal = await terminals.get(sandboxIdOf(http), idOf(http));
        return http.json({ success: true, data: toWire(terminal) });
      },
    }),
    sidecarOperation({
      id: "streamSidecarTerminal",
      method: "get",
      path: `${PATH}/stream`,
      summary: "What it writes as server-sent events, from the given offset to the end",
      query: sidecarStreamQuery,
      replies: {
        200: { contentType: "text/event-stream", description: "Events `output`, then one `exit` or `error`" },
      },
      quiet: true,
      handle: async ({ query, request, http }) => {
        const terminal = await terminals.get(sandboxIdOf(http), idOf(http));
        const offset = offsetOfEventId(http.req.header("last-event-id")) ?? query.offset ?? 0;
        const range = { offset, encoding: query.encoding ?? "utf8" } as const;
        return eventStream((signal) => terminalEvents(aido, terminal, range, signal), request);
      },
    }),
    sidecarOperation({
      id: "executeInSidecarTerminal",
      method: "post",
      path: `${PATH}/execute`,
      summary: "Type a command and the return key",
      body: sidecarExecuteBody,
      replies: { 200: { schema: sidecarDoneReply, description: "It is typed; the stream has what it does" } },
      handle: async ({ body, request, http }) => {
        const data = Buffer.from(`${body.command}\n`);
        await terminals.write(sandboxIdOf(http), idOf(http), data, request.signal);
        return http.json(DONE);
      },
    }),
    sidecarOperation({
      id: "writeSidecarTerminal",
      method: "post",
      path: `${PATH}/input`,
      summary: "Send keys as they are",
      body: sidecarInputBody,
      replies: { 200: { schema: sidecarDoneReply, description: "The terminal has taken them" } },
      quiet: true,
      handle: async ({ body, request, http }) => {
        const data = Buffer.from(body.data, body.encoding ?? "utf8");
        await terminals.write(sandboxIdOf(http), idOf(http), data, request.signal);
        return http.json(DONE);
      },
    }),
    sidecarOperation({
      id: "resizeSidecarTerminal",
      method: "patch",
      path: PATH,
      summary: "Change its size",
      body: sidecarResizeBody,
      replies: { 200: { schema: sidecarDoneReply, description: "Done" } },
      quiet: true,
      handle: async ({ body, http }) => {
        await terminals.resize(sandboxIdOf(http), idOf(http), body);
        return http.json(DONE);
      },
    }),
    sidecarOperation({
      id: "closeSidecarTerminal",
      method: "delete",
      path: PATH,
      summary: "End its shell and all that was started there",
      replies: { 200: { schema: sidecarDoneReply, description: "They are gone" } },
      handle: async ({ request, http }) => {
        await terminals.close(sandboxIdOf(http), idOf(http), request.signal);
        return http.json(DONE);
      },
    }),
  ];
}

function idOf(http: Context): string {
  return http.req.param("terminalId") ?? "";
}

function offsetOfEventId(id: string | undefined): number | undefined {
  return id !== undefined && /^\d{1,15}$/.test(id) ? Number(id) : undefined;
}

function toWire({ exec, name, shell }: Terminal): SidecarTerminal {
  return {
    sessionId: exec.id,
    name,
    shell,
    isRunning: exec.status === "running",
    exitCode: exec.exitCode ?? null,
    signal: exec.signal ?? null,
    createdAt: exec.startedAt.toISOString(),
    offset: exec.stdoutBytes,
    streamUrl: `/terminals/${exec.id}/stream`,
  };
}
