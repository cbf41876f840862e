import { serverReply } from "@aido/sdk/schemas";
import type { Driver } from "../../core/driver/driver.ts";
import { type Operation, operation } from "../operation.ts";

const ANSWER_LIMIT_MS = 10_000;

export function serverRoutes(driver: Pick<Driver, "name" | "capabilities">, version: string): Operation[] {
  return [
    operation({
      id: "server",
      method: "get",
      path: "/api/server",
      tag: "system",
      summary: "What this server can do",
      scope: "read",
      replies: { 200: { schema: serverReply, description: "Its version, driver and what that can give" } },
      quiet: true,
      handle: async ({ request, http }) => {
        const limit = AbortSignal.any([request.signal, AbortSignal.timeout(ANSWER_LIMIT_MS)]);
        const { isolations, networks, warnings } = await driver.capabilities(limit);
        return http.json({ version, driver: driver.name, isolations, networks, warnings });
      },
    }),
  ];
}
