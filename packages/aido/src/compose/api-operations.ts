import type { Agents } from "@aido/sdk";
import type { AwsUsers } from "../config/aws-settings.ts";
import type { ImageBuilders } from "../config/image-settings.ts";
import type { CoreAido } from "../core/core-aido.ts";
import type { PoolState } from "../core/pool/warm-pool.ts";
import type { PortTokens } from "../core/ports/port-tokens.ts";
import { toSandboxInfo } from "../core/sandbox/to-sandbox-info.ts";
import type { AuditTrail } from "../http/audit-trail.ts";
import type { Idempotency } from "../http/idempotent.ts";
import type { HttpMetrics } from "../http/metrics.ts";
import type { Operation } from "../http/operation.ts";
import type { SandboxLookup } from "../http/ownership.ts";
import { agentRoutes } from "../http/routes/agents.ts";
import { batchRoutes } from "../http/routes/batches.ts";
import { execRoutes } from "../http/routes/execs.ts";
import { fileRoutes } from "../http/routes/files.ts";
import { gcRoutes } from "../http/routes/gc.ts";
import { historyRoutes } from "../http/routes/history.ts";
import { imageRoutes } from "../http/routes/images.ts";
import { jobRoutes } from "../http/routes/jobs.ts";
import { poolRoutes } from "../http/routes/pool.ts";
import { portRoutes } from "../http/routes/ports.ts";
import { reaperRoutes } from "../http/routes/reaper.ts";
import { recordRoutes } from "../http/routes/records.ts";
import { runRoutes } from "../http/routes/runs.ts";
import { sandboxRoutes } from "../http/routes/sandboxes.ts";
import { serverRoutes } from "../http/routes/server.ts";
import { snapshotRoutes } from "../http/routes/snapshots.ts";
import { sshRoutes } from "../http/routes/ssh.ts";
import { systemRoutes } from "../http/routes/system.ts";
import { workflowRoutes } from "../http/routes/workflows.ts";
import { workspaceFileRoutes } from "../http/routes/workspace-files.ts";
import { workspaceRoutes } from "../http/routes/workspaces.ts";
import { sidecarRoutes } from "../http/sidecar/sidecar-routes.ts";

export interface ApiDeps {
  aido: CoreAido;
  version: string;
  idempotency: Idempotency;
  audit: AuditTrail;
  metrics: HttpMetrics;
  tokens: PortTokens;
  maxBodyBytes: number;
  /** Life of sandboxes that name none. */
  timeoutMs: number;
  /** Aido's own when absent. */
  agents?: Agents;
  imageBuilders: ImageBuilders;
  /** Administrators when absent. */
  awsUsers?: AwsUsers;
  pool: () => readonly PoolState[];
  failing: () => Promise<readonly string[]>;
  isDraining: () => boolean;
}

/** Everything the server answers: the router, the OpenAPI document and the reference page are made from this list. */
export function apiOperations(deps: ApiDeps): readonly Operation[] {
  const { aido, version, awsUsers } = deps;
  // Ends are noticed as they happen, so a command need not ask the engine first whether its sandbox runs.
  const known: SandboxLookup = {
    sandboxes: {
      get: async (reference, owner) =>
        toSandboxInfo(await aido.sandboxes.resolve(reference, owner), aido.address),
      list: (filter) => aido.sandboxes.list(filter),
    },
  };
  const operations: Operation[] = [
    ...sandboxRoutes(aido, {
      idempotency: deps.idempotency,
      images: aido.images,
      awsUsers,
      timeoutMs: deps.timeoutMs,
    }),
    ...execRoutes(aido, {
      known,
      idempotency: deps.idempotency,
      repeated: (sandboxId, request) => aido.execs.repeated(sandboxId, request),
    }),
    ...fileRoutes(aido, known),
    ...workspaceFileRoutes(aido, known),
    ...agentRoutes(aido, known),
    ...historyRoutes(aido, aido.history),
    ...snapshotRoutes(aido, aido.snapshots),
    ...portRoutes(aido, deps.tokens),
    ...runRoutes(aido, { maxBodyBytes: deps.maxBodyBytes, images: aido.images, awsUsers }),
    ...sshRoutes(aido),
    ...jobRoutes(aido, { known, images: aido.images }),
    ...batchRoutes(aido),
    ...workflowRoutes(aido),
    ...imageRoutes({ images: aido.images, builders: deps.imageBuilders }),
    ...recordRoutes(aido, deps.audit),
    ...serverRoutes(aido.driver, version),
    ...poolRoutes(deps.pool),
    ...sidecarRoutes({
      aido,
      known,
      agents: deps.agents ?? aido.agents,
      maxBodyBytes: deps.maxBodyBytes,
      runningExecs: async (sandboxId) => (await aido.store.execs.running(sandboxId)).map(({ id }) => id),
    }),
    ...reaperRoutes(aido.reaper),
    ...gcRoutes(aido.gc),
    ...workspaceRoutes(aido.workspaces),
    ...systemRoutes({
      version,
      metrics: deps.metrics,
      failing: deps.failing,
      isDraining: deps.isDraining,
      operations: () => operations,
    }),
  ];
  return operations;
}
