import type { Context } from "hono";
import type { z } from "zod";
import type { Scope } from "../core/access/api-keys.ts";
import type { RequestContext } from "./request-context.ts";

type Infer<Schema> = Schema extends z.ZodType ? z.infer<Schema> : undefined;

/** What a handler gets: everything checked against the operation's schemas. */
export interface Input<Params, Query, Body> {
  params: Infer<Params>;
  query: Infer<Query>;
  body: Infer<Body>;
  request: RequestContext;
  http: Context;
}

/**
 * One endpoint, said once: the router, the input checks, the access rule and the OpenAPI page all come from it.
 */
export interface Operation<
  Params extends z.ZodType | undefined = z.ZodType | undefined,
  Query extends z.ZodType | undefined = z.ZodType | undefined,
  Body extends z.ZodType | undefined = z.ZodType | undefined,
> {
  id: string;
  method: "get" | "post" | "put" | "patch" | "delete";
  /** With `:name` parameters. */
  path: string;
  tag: string;
  summary: string;
  /** `public` needs no key; `sandbox` needs the token of the sandbox that `:sandboxId` names, and no key opens it. */
  scope: Scope | "public" | "sandbox";
  params?: Params;
  query?: Query;
  body?: Body;
  /** A body that is not JSON and is streamed by the handler. */
  rawBody?: string;
  /** Replies by status; `undefined` schema means the given content type. */
  replies: Readonly<Record<number, { schema?: z.ZodType; contentType?: string; description: string }>>;
  /** How its failures are said: the API's own way unless this names another. */
  errors?: "sidecar";
  /** Asked again and again: told in the log as a detail, and a read is kept in the audit log once a minute. */
  quiet?: boolean;
  /** Left out of the audit log: numbers about the server, which a monitor reads all day. */
  unaudited?: boolean;
  /** Needs no key, and costs so little that anybody may ask as often as he likes. */
  unlimited?: boolean;
  handle(input: Input<Params, Query, Body>): Promise<Response> | Response;
}

/** Keeps the schemas' types while the list of operations stays plain. */
export function operation<
  Params extends z.ZodType | undefined = undefined,
  Query extends z.ZodType | undefined = undefined,
  Body extends z.ZodType | undefined = undefined,
>(definition: Operation<Params, Query, Body>): Operation {
  return definition as unknown as Operation;
}
