import type { Aido, SshKey } from "@aido/sdk";
import {
  sshAddressQuery,
  sshAddressReply,
  sshKeyBody,
  sshKeyQuery,
  sshKeyRemovedReply,
  sshKeyReply,
  sshKeysReply,
} from "@aido/sdk/schemas";
import type { Context } from "hono";
import { type Operation, operation } from "../operation.ts";
import { requestedSandbox } from "../ownership.ts";
import type { RequestContext } from "../request-context.ts";

const TAG = "ssh";
const KEYS = "/api/sandbox/:containerId/ssh-keys";
/** A server that listens everywhere is reached by the name it was asked under. */
const EVERYWHERE = new Set(["0.0.0.0", "::"]);

export function sshRoutes(aido: Aido): Operation[] {
  const own = (request: RequestContext, http: Context) =>
    requestedSandbox(aido, request, http.req.param("containerId") ?? "");
  return [
    operation({
      id: "addSshKey",
      method: "post",
      path: KEYS,
      tag: TAG,
      summary: "Let an SSH key log in to the sandbox",
      scope: "write",
      body: sshKeyBody,
      replies: { 200: { schema: sshKeyReply, description: "It may log in; also when it was there before" } },
      handle: async ({ body, request, http }) => {
        const sandbox = await own(request, http);
        return http.json(toWire(await aido.ssh.addKey(sandbox.id, body)));
      },
    }),
    operation({
      id: "listSshKeys",
      method: "get",
      path: KEYS,
      tag: TAG,
      summary: "List the SSH keys that may log in",
      scope: "read",
      replies: { 200: { schema: sshKeysReply, description: "Oldest first" } },
      quiet: true,
      handle: async ({ request, http }) => {
        const sandbox = await own(request, http);
        return http.json({ keys: (await aido.ssh.keys(sandbox.id)).map(toWire) });
      },
    }),
    operation({
      id: "removeSshKey",
      method: "delete",
      path: KEYS,
      tag: TAG,
      summary: "Revoke an SSH key; connections made with it end",
      scope: "write",
      query: sshKeyQuery,
      replies: { 200: { schema: sshKeyRemovedReply, description: "It may no longer log in" } },
      handle: async ({ query, request, http }) => {
        const sandbox = await own(request, http);
        return http.json({ removed: await aido.ssh.removeKey(sandbox.id, query) });
      },
    }),
    operation({
      id: "getSshAddress",
      method: "get",
      path: "/api/sandbox/:containerId/ssh",
      tag: TAG,
      summary: "Where and as whom an SSH client logs in",
      scope: "read",
      query: sshAddressQuery,
      replies: { 200: { schema: sshAddressReply, description: "For a key that was added" } },
      quiet: true,
      handle: async ({ query, request, http }) => {
        const sandbox = await own(request, http);
        const address = await aido.ssh.address(sandbox.id, query.username);
        const { hostname } = new URL(http.req.url);
        return http.json({ ...address, host: EVERYWHERE.has(address.host) ? hostname : address.host });
      },
    }),
  ];
}

function toWire({ sandboxId, username, createdAt, ...key }: SshKey): object {
  return {
    containerId: sandboxId,
    ...key,
    username: username ?? null,
    createdAt: createdAt.toISOString(),
  };
}
