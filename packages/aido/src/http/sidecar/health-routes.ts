import { isAidoError, type SandboxInfo } from "@aido/sdk/protocol";
import { sidecarDetailsReply, sidecarHealthReply } from "@aido/sdk/schemas";
import type { Operation } from "../operation.ts";
import type { SandboxLookup } from "../ownership.ts";
import { sandboxIdOf, sidecarOperation } from "./sidecar-operation.ts";
import type { SidecarDeps } from "./sidecar-routes.ts";

/** The supervisor, by which all others are started. */
const FIRST_PROCESS = 1;

/** Asked without a token, so a sandbox that is not there cannot be told from one that does not run. */
export function healthRoutes({ aido, known, agents }: SidecarDeps): Operation[] {
  return [
    sidecarOperation({
      id: "getSidecarHealth",
      method: "get",
      path: "/health",
      summary: "Whether the sandbox takes requests",
      scope: "public",
      replies: {
        200: { schema: sidecarHealthReply, description: "It does" },
        503: { schema: sidecarHealthReply, description: "It is stopped, or not there" },
      },
      quiet: true,
      unlimited: true,
      handle: async ({ http }) => {
        const isUp = (await running(known, sandboxIdOf(http))) !== undefined;
        const body = {
          status: isUp ? "ok" : "unavailable",
          backends: { total: (await agents.list()).length },
          timestamp: new Date().toISOString(),
        };
        return http.json(body, isUp ? 200 : 503);
      },
    }),
    sidecarOperation({
      id: "getSidecarHealthDetails",
      method: "get",
      path: "/health/detailed",
      summary: "Memory, processes and age of the sandbox",
      scope: "public",
      replies: {
        200: { schema: sidecarDetailsReply, description: "`degraded` when its use cannot be read" },
        503: { schema: sidecarDetailsReply, description: "It is stopped, or not there" },
      },
      quiet: true,
      handle: async ({ http }) => {
        const sandbox = await running(aido, sandboxIdOf(http));
        if (sandbox === undefined) return http.json({ status: "unhealthy", uptime: 0 }, 503);
        const uptime = Math.max(0, (Date.now() - (sandbox.startedAt?.getTime() ?? Date.now())) / 1000);
        const stats = await aido.sandboxes.stats(sandbox.id).catch(() => undefined);
        if (stats === undefined) return http.json({ status: "degraded", uptime });
        return http.json({
          status: "healthy",
          memory: { heapUsed: stats.memoryBytes, limit: sandbox.limits.memoryBytes },
          process: { pid: FIRST_PROCESS, count: stats.pids, cpuMs: stats.cpuMs },
          uptime,
        });
      },
    }),
  ];
}

async function running({ sandboxes }: SandboxLookup, sandboxId: string): Promise<SandboxInfo | undefined> {
  try {
    const sandbox = await sandboxes.get(sandboxId);
    const isOwn = sandbox.id === sandboxId && sandbox.sidecarUrl !== undefined;
    return isOwn && sandbox.state === "running" ? sandbox : undefined;
  } catch (thrown) {
    if (isAidoError(thrown)) return undefined;
    throw thrown;
  }
}
