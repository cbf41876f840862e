import type { Aido } from "@aido/sdk";
import { portReply } from "@aido/sdk/schemas";
import { checkPort } from "../../core/ports/port-service.ts";
import type { PortTokens } from "../../core/ports/port-tokens.ts";
import { type Operation, operation } from "../operation.ts";
import { requestedSandbox } from "../ownership.ts";
import { portHost, portPath } from "../proxy/port-address.ts";

export function portRoutes(aido: Aido, tokens: PortTokens): Operation[] {
  return [
    operation({
      id: "getPortAddress",
      method: "post",
      path: "/api/sandbox/:containerId/ports/:port",
      tag: "ports",
      summary: "The address of a port inside the sandbox; whoever has it may use the port",
      scope: "write",
      replies: { 200: { schema: portReply, description: "The same for as long as the sandbox exists" } },
      handle: async ({ request, http }) => {
        const sandbox = await requestedSandbox(aido, request, http.req.param("containerId") ?? "");
        const port = Number(http.req.param("port"));
        checkPort(port);
        const token = tokens.issue(sandbox.id, port);
        const { protocol, host } = new URL(http.req.url);
        const path = portPath(sandbox.id, port, token);
        const ownHost = portHost(sandbox.id, port, token, host);
        return http.json({
          containerId: sandbox.id,
          port,
          token,
          path,
          url: `${protocol}//${host}${path}`,
          host: ownHost ?? null,
        });
      },
    }),
  ];
}
