import type { Aido } from "@aido/sdk";
import { filePathQuery, writeFilesBody, writtenReply } from "@aido/sdk/schemas";
import { type Operation, operation } from "../operation.ts";
import { requestedSandbox, type SandboxLookup } from "../ownership.ts";
import { firstChunkThenStream } from "../streams/first-chunk.ts";
import { refuseOutside } from "./begin-exec.ts";

const TAG = "files";
const ONE = "/api/sandbox/:containerId";
const BYTES = "application/octet-stream";
const TAR = "application/x-tar";
const attached = (contentType: string, name?: string) => ({
  "content-type": contentType,
  "x-content-type-options": "nosniff",
  "content-disposition": name === undefined ? "attachment" : `attachment; filename="${name}"`,
});

/** The workspace as clients of the first sandbox servers ask for it; `files` beneath a sandbox can do more. */
export function workspaceFileRoutes(aido: Aido, known: SandboxLookup = aido): Operation[] {
  return [
    operation({
      id: "readWorkspaceFile",
      method: "get",
      path: `${ONE}/file`,
      tag: TAG,
      summary: "Content of a file of the workspace",
      scope: "read",
      query: filePathQuery,
      replies: { 200: { contentType: BYTES, description: "Its bytes" } },
      handle: async ({ query, request, http }) => {
        const { id } = await requestedSandbox(known, request, http.req.param("containerId") ?? "");
        refuseOutside(query.filePath);
        const content = await firstChunkThenStream(
          (signal) => aido.files.read(id, query.filePath, signal),
          request.signal,
        );
        return new Response(content, { headers: attached(BYTES) });
      },
    }),
    operation({
      id: "downloadWorkspace",
      method: "get",
      path: `${ONE}/download-all`,
      tag: TAG,
      summary: "The whole workspace as an archive",
      scope: "read",
      replies: { 200: { contentType: TAR, description: "Names are relative to the workspace" } },
      handle: async ({ request, http }) => {
        const { id } = await requestedSandbox(known, request, http.req.param("containerId") ?? "");
        const content = await firstChunkThenStream(
          (signal) => aido.files.tarOut(id, ".", signal),
          request.signal,
        );
        return new Response(content, { headers: attached(TAR, "workspace.tar") });
      },
    }),
    operation({
      id: "writeWorkspaceFiles",
      method: "post",
      path: "/api/sandbox/files",
      tag: TAG,
      summary: "Write files of the workspace without running a command",
      scope: "write",
      body: writeFilesBody,
      replies: { 200: { schema: writtenReply, description: "Each written in one step" } },
      handle: async ({ body, request, http }) => {
        const { id } = await requestedSandbox(known, request, body.containerId);
        const files = Object.entries(body.files);
        for (const [path] of files) refuseOutside(path);
        for (const [path, content] of files) {
          await aido.files.write(id, path, Buffer.from(content, "utf8"), { signal: request.signal });
        }
        return http.json({ status: "success", containerId: id, files: files.map(([path]) => path) });
      },
    }),
  ];
}
