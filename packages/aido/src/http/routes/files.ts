import type { Aido } from "@aido/sdk";
import {
  fileListReply,
  fileReply,
  listQuery,
  mkdirBody,
  moveBody,
  okReply,
  pathQuery,
  writeQuery,
} from "@aido/sdk/schemas";
import type { Context } from "hono";
import { bodyChunks } from "../incoming.ts";
import { type Input, type Operation, operation } from "../operation.ts";
import { requestedSandbox, type SandboxLookup } from "../ownership.ts";
import { eventStream } from "../streams/event-stream.ts";
import { firstChunkThenStream } from "../streams/first-chunk.ts";
import { fileToWire } from "../to-wire.ts";

const TAG = "files";
const BASE = "/api/sandbox/:containerId/files";
const BYTES = "application/octet-stream";
/** What a sandbox has written is never shown as a page of this server. */
const INERT = { "x-content-type-options": "nosniff", "content-disposition": "attachment" };

export function fileRoutes(aido: Aido, known: SandboxLookup = aido): Operation[] {
  const own = async (input: Pick<Input<undefined, undefined, undefined>, "http" | "request">) =>
    (await requestedSandbox(known, input.request, input.http.req.param("containerId") ?? "")).id;
  const done = (http: Context) => http.json({ status: "success" });

  return [
    operation({
      id: "readFile",
      method: "get",
      path: BASE,
      tag: TAG,
      summary: "Content of a file",
      scope: "read",
      query: pathQuery,
      replies: { 200: { contentType: BYTES, description: "Its bytes" } },
      handle: async (input) => {
        const id = await own(input);
        const content = await firstChunkThenStream(
          (signal) => aido.files.read(id, input.query.path, signal),
          input.request.signal,
        );
        return new Response(content, { headers: { "content-type": BYTES, ...INERT } });
      },
    }),
    operation({
      id: "writeFile",
      method: "put",
      path: BASE,
      tag: TAG,
      summary: "Write the body to a file; missing folders are made",
      scope: "write",
      query: writeQuery,
      rawBody: BYTES,
      replies: { 200: { schema: okReply, description: "Written in one step" } },
      handle: async (input) => {
        await aido.files.write(await own(input), input.query.path, bodyChunks(input.http), {
          signal: input.request.signal,
          ...(input.query.mode === undefined ? {} : { mode: Number.parseInt(input.query.mode, 8) }),
        });
        return done(input.http);
      },
    }),
    operation({
      id: "removeFile",
      method: "delete",
      path: BASE,
      tag: TAG,
      summary: "Remove a file, or a folder with all it holds",
      scope: "write",
      query: pathQuery,
      replies: { 200: { schema: okReply, description: "Gone, or was not there" } },
      handle: async (input) => {
        await aido.files.remove(await own(input), input.query.path, input.request.signal);
        return done(input.http);
      },
    }),
    operation({
      id: "listFiles",
      method: "get",
      path: `${BASE}/list`,
      tag: TAG,
      summary: "Entries of a folder",
      scope: "read",
      query: listQuery,
      replies: { 200: { schema: fileListReply, description: "Sorted by name" } },
      quiet: true,
      handle: async (input) => {
        const files = await aido.files.list(await own(input), input.query.path ?? ".", {
          recursive: input.query.recursive === "true",
          signal: input.request.signal,
        });
        return input.http.json({ files: files.map(fileToWire) });
      },
    }),
    operation({
      id: "statFile",
      method: "get",
      path: `${BASE}/stat`,
      tag: TAG,
      summary: "Type, size, mode and time of an entry; links are not followed",
      scope: "read",
      query: pathQuery,
      replies: { 200: { schema: fileReply, description: "As it is now" } },
      quiet: true,
      handle: async (input) =>
        input.http.json(
          fileToWire(await aido.files.stat(await own(input), input.query.path, input.request.signal)),
        ),
    }),
    operation({
      id: "moveFile",
      method: "post",
      path: `${BASE}/move`,
      tag: TAG,
      summary: "Rename a file or folder",
      scope: "write",
      body: moveBody,
      replies: { 200: { schema: okReply, description: "Moved" } },
      handle: async (input) => {
        await aido.files.move(await own(input), input.body.from, input.body.to, input.request.signal);
        return done(input.http);
      },
    }),
    operation({
      id: "makeDirectory",
      method: "post",
      path: `${BASE}/mkdir`,
      tag: TAG,
      summary: "Make a folder and its parents",
      scope: "write",
      body: mkdirBody,
      replies: { 200: { schema: okReply, description: "There" } },
      handle: async (input) => {
        await aido.files.mkdir(await own(input), input.body.path, input.request.signal);
        return done(input.http);
      },
    }),
    operation({
      id: "downloadTree",
      method: "get",
      path: `${BASE}/tar`,
      tag: TAG,
      summary: "A folder as a tar archive",
      scope: "read",
      query: pathQuery,
      replies: { 200: { contentType: "application/x-tar", description: "Names are relative to the folder" } },
      handle: async (input) => {
        const id = await own(input);
        const archive = await firstChunkThenStream(
          (signal) => aido.files.tarOut(id, input.query.path, signal),
          input.request.signal,
        );
        return new Response(archive, { headers: { "content-type": "application/x-tar", ...INERT } });
      },
    }),
    operation({
      id: "uploadTree",
      method: "put",
      path: `${BASE}/tar`,
      tag: TAG,
      summary: "Extract a tar archive inside the sandbox",
      scope: "write",
      query: pathQuery,
      rawBody: "application/x-tar",
      replies: { 200: { schema: okReply, description: "Extracted" } },
      handle: async (input) => {
        await aido.files.tarIn(
          await own(input),
          input.query.path,
          bodyChunks(input.http),
          input.request.signal,
        );
        return done(input.http);
      },
    }),
    operation({
      id: "watchFiles",
      method: "get",
      path: `${BASE}/watch`,
      tag: TAG,
      summary: "Changes below a folder as server-sent events",
      scope: "read",
      query: pathQuery,
      replies: { 200: { contentType: "text/event-stream", description: "Events `change` until you leave" } },
      quiet: true,
      handle: async (input) => {
        const id = await own(input);
        return eventStream(
          (signal) => changes(aido.files.watch(id, input.query.path, signal)),
          input.request,
        );
      },
    }),
  ];
}

async function* changes(events: AsyncIterable<unknown>) {
  for await (const data of events) yield { event: "change", data };
}
