import { createHash } from "node:crypto";
import type { Aido } from "@aido/sdk";
import { AidoError } from "@aido/sdk/protocol";
import { sidecarReadBody, sidecarReadReply, sidecarWriteBody, sidecarWriteReply } from "@aido/sdk/schemas";
import type { Operation } from "../operation.ts";
import { sandboxIdOf, sidecarOperation } from "./sidecar-operation.ts";
import type { SidecarDeps } from "./sidecar-routes.ts";
import { workspacePath } from "./workspace-path.ts";

export function fileRoutes({ aido, known, maxBodyBytes: maxBytes }: SidecarDeps): Operation[] {
  const beneath = async (sandboxId: string, path: string): Promise<string> =>
    workspacePath((await known.sandboxes.get(sandboxId)).workdir, path);

  return [
    sidecarOperation({
      id: "writeSidecarFile",
      method: "post",
      path: "/files/write",
      summary: "Write a file of the workspace, with the directories it needs",
      body: sidecarWriteBody,
      replies: { 200: { schema: sidecarWriteReply, description: "It is there as a whole" } },
      handle: async ({ body, request, http }) => {
        const sandboxId = sandboxIdOf(http);
        const path = await beneath(sandboxId, body.path);
        const content = toBytes(body.content, body.encoding);
        const options = { signal: request.signal };
        await aido.files.write(sandboxId, path, content, options);
        return http.json({ success: true, data: { path, hash: sha256(content), size: content.length } });
      },
    }),
    sidecarOperation({
      id: "readSidecarFile",
      method: "post",
      path: "/files/read",
      summary: "Read a file of the workspace",
      body: sidecarReadBody,
      replies: { 200: { schema: sidecarReadReply, description: "As text, unless base64 is asked for" } },
      handle: async ({ body, request, http }) => {
        const sandboxId = sandboxIdOf(http);
        const path = await beneath(sandboxId, body.path);
        const bytes = await readAll(aido, { sandboxId, path, maxBytes }, request.signal);
        const encoding = body.encoding ?? "utf8";
        const content = bytes.toString(encoding);
        const data = { path, content, encoding, hash: sha256(bytes), size: bytes.length };
        return http.json({ success: true, data });
      },
    }),
  ];
}

async function readAll(
  aido: Aido,
  file: { sandboxId: string; path: string; maxBytes: number },
  signal: AbortSignal,
): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of aido.files.read(file.sandboxId, file.path, signal)) {
    size += chunk.length;
    if (size > file.maxBytes) {
      throw new AidoError("PAYLOAD_TOO_LARGE", `The file is larger than ${file.maxBytes} bytes`, {
        hint: "GET /api/sandbox/<id>/files?path=… streams it.",
      });
    }
    // A copy: the chunk may be a view into a buffer that its producer uses again.
    chunks.push(Uint8Array.from(chunk));
  }
  return Buffer.concat(chunks);
}

function toBytes(content: string, encoding: "utf8" | "base64" = "utf8"): Buffer {
  const bytes = Buffer.from(content, encoding);
  if (encoding === "utf8" || bytes.toString("base64").replace(/=+$/, "") === content.replace(/=+$/, "")) {
    return bytes;
  }
  throw new AidoError("VALIDATION_ERROR", "The content is not base64", { details: { field: "content" } });
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
