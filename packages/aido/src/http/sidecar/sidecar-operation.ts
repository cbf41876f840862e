import type { Context } from "hono";
import type { z } from "zod";
import { type Operation, operation } from "../operation.ts";

type Definition<
  Params extends z.ZodType | undefined,
  Query extends z.ZodType | undefined,
  Body extends z.ZodType | undefined,
> = Omit<Operation<Params, Query, Body>, "tag" | "scope" | "errors"> & { scope?: "public" };

/** What all operations of the sidecar API share; `path` is what comes after the sandbox's address. */
export function sidecarOperation<
  Params extends z.ZodType | undefined = undefined,
  Query extends z.ZodType | undefined = undefined,
  Body extends z.ZodType | undefined = undefined,
>(definition: Definition<Params, Query, Body>): Operation {
  return operation<Params, Query, Body>({
    scope: "sandbox",
    ...definition,
    tag: "sidecar",
    errors: "sidecar",
    path: `/sidecar/:sandboxId${definition.path}`,
  });
}

/** The whole id: unlike elsewhere, the beginning of one or a name will not do. */
export function sandboxIdOf(http: Context): string {
  return http.req.param("sandboxId") ?? "";
}
