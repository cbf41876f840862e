import type { Aido, Snapshots } from "@aido/sdk";
import { restoreBody, restoreReply, snapshotBody, snapshotReply } from "@aido/sdk/schemas";
import { type Input, type Operation, operation } from "../operation.ts";
import { requestedSandbox } from "../ownership.ts";

const TAG = "snapshots";
const BASE = "/api/sandbox/:containerId";

export function snapshotRoutes(aido: Aido, snapshots: Snapshots): Operation[] {
  const own = async (input: Pick<Input<undefined, undefined, undefined>, "http" | "request">) =>
    (await requestedSandbox(aido, input.request, input.http.req.param("containerId") ?? "")).id;

  return [
    operation({
      id: "takeSnapshot",
      method: "post",
      path: `${BASE}/snapshot`,
      tag: TAG,
      summary: "Keep the sandbox's files as one object in an object store",
      scope: "write",
      body: snapshotBody,
      replies: { 200: { schema: snapshotReply, description: "Where it is and its hash" } },
      handle: async (input) => {
        const { signal } = input.request;
        const info = await snapshots.take(await own(input), { ...input.body, signal });
        return input.http.json({ ...info, createdAt: info.createdAt.toISOString() });
      },
    }),
    operation({
      id: "restoreSnapshot",
      method: "post",
      path: `${BASE}/restore`,
      tag: TAG,
      summary: "Replace the sandbox's files with those of a snapshot",
      scope: "write",
      body: restoreBody,
      replies: {
        200: { schema: restoreReply, description: "The object was whole and its files are in place" },
      },
      handle: async (input) => {
        const { url, sha256 } = input.body;
        await snapshots.restore(await own(input), url, { sha256, signal: input.request.signal });
        return input.http.json({ status: "success" });
      },
    }),
  ];
}
