import type { Jobs } from "@aido/sdk";
import { jobBody, jobListReply, jobReply } from "@aido/sdk/schemas";
import type { CoreAido } from "../../core/core-aido.ts";
import type { JobCaller } from "../../core/job/job-caller.ts";
import type { JobDispatcher } from "../../core/job/job-dispatcher.ts";
import { type Operation, operation } from "../operation.ts";
import { type ImageLookup, refuseForeignImage } from "../own-image.ts";
import { ownerLabels, requestedSandbox, type SandboxLookup } from "../ownership.ts";
import type { RequestContext } from "../request-context.ts";

const TAG = "jobs";

export interface JobRouteDeps {
  /** Where a sandbox is looked up without asking the driver. */
  known: SandboxLookup;
  images: ImageLookup;
}

export interface JobRouteParts extends Pick<CoreAido, "sandboxes"> {
  jobs: JobDispatcher & Pick<Jobs, "list">;
}

export function jobRoutes(aido: JobRouteParts, deps: JobRouteDeps): Operation[] {
  return [
    operation({
      id: "listJobs",
      method: "get",
      path: "/api/jobs",
      tag: TAG,
      summary: "Every job with its number, name and the JSON Schema of its request",
      scope: "read",
      replies: { 200: { schema: jobListReply, description: "In the order of their numbers" } },
      quiet: true,
      handle: async ({ http }) => http.json({ jobs: await aido.jobs.list() }),
    }),
    operation({
      id: "runJob",
      method: "post",
      path: "/api/jobs/:id",
      tag: TAG,
      summary: "Run a job, by number or name; fields in camelCase or snake_case",
      scope: "write",
      body: jobBody,
      replies: { 200: { schema: jobReply, description: "The job's result itself" } },
      handle: async ({ body, request, http }) => {
        const caller = callerOf(aido, deps, request);
        const job = http.req.param("id") ?? "";
        return http.json(await aido.jobs.runAny(job, body, { caller, signal: request.signal }));
      },
    }),
  ];
}

/** Whoever sent the request: sees its own sandboxes, and has as many as it may have. */
function callerOf(
  aido: Pick<CoreAido, "sandboxes">,
  { known, images }: JobRouteDeps,
  request: RequestContext,
): JobCaller {
  const { principal } = request;
  return {
    owner: principal.owner,
    isOperator: principal.scopes.includes("admin"),
    isInternal: false,
    find: (id) => requestedSandbox(known, request, id),
    create: async (wanted, options) => {
      await refuseForeignImage(images, principal, wanted.image);
      const labels = { ...wanted.labels, ...ownerLabels(principal) };
      const sandbox = await aido.sandboxes.create({ ...wanted, labels }, options);
      request.sandboxId = sandbox.id;
      return sandbox;
    },
  };
}
