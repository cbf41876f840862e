import { errorReply, sidecarErrorReply } from "@aido/sdk/schemas";
import { z } from "zod";
import type { Operation } from "./operation.ts";

/** OpenAPI 3.1 from the same schemas that check requests. */
export function openApiDocument(operations: readonly Operation[], version: string): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const operation of operations) {
    const path = operation.path.replace(/:(\w+)/g, "{$1}");
    paths[path] ??= {};
    paths[path][operation.method] = describe(operation);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Aido",
      version,
      description: "Sandboxes for AI agents and untrusted code. Errors have one shape and stable codes.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    paths,
    components: {
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer" },
        sandboxToken: { type: "http", scheme: "bearer", description: "The token of the one sandbox" },
      },
      schemas: { Error: schema(errorReply), SidecarError: schema(sidecarErrorReply) },
    },
  };
}

function describe(operation: Operation): object {
  const responses: Record<string, object> = {};
  for (const [status, reply] of Object.entries(operation.replies)) {
    const type = reply.contentType ?? "application/json";
    responses[status] = {
      description: reply.description,
      ...(reply.schema === undefined && reply.contentType === undefined
        ? {}
        : { content: { [type]: reply.schema === undefined ? {} : { schema: schema(reply.schema) } } }),
    };
  }
  const errors = operation.errors === "sidecar" ? "SidecarError" : "Error";
  responses["default"] = {
    description: "Why it was not done",
    content: { "application/json": { schema: { $ref: `#/components/schemas/${errors}` } } },
  };
  return {
    operationId: operation.id,
    tags: [operation.tag],
    summary: operation.summary,
    security: securityOf(operation),
    parameters: [
      ...parameters("path", operation.params, operation.path),
      ...parameters("query", operation.query, operation.path),
    ],
    ...requestBody(operation),
    responses,
  };
}

function securityOf({ scope }: Operation): object[] {
  if (scope === "public") return [];
  return [scope === "sandbox" ? { sandboxToken: [] } : { bearer: [] }];
}

function requestBody(operation: Operation): object {
  if (operation.body !== undefined) {
    // No body is read as an empty one.
    const required = !operation.body.safeParse({}).success;
    return { requestBody: { required, content: { "application/json": { schema: schema(operation.body) } } } };
  }
  if (operation.rawBody !== undefined) {
    return { requestBody: { required: true, content: { [operation.rawBody]: {} } } };
  }
  return {};
}

function parameters(place: "path" | "query", from: z.ZodType | undefined, path: string): object[] {
  if (from === undefined) {
    if (place === "query") return [];
    return [...path.matchAll(/:(\w+)/g)].map((match) => ({
      name: match[1],
      in: "path",
      required: true,
      schema: { type: "string" },
    }));
  }
  const json = schema(from) as { properties?: Record<string, object>; required?: string[] };
  return Object.entries(json.properties ?? {}).map(([name, value]) => ({
    name,
    in: place,
    required: place === "path" || (json.required ?? []).includes(name),
    schema: value,
  }));
}

function schema(from: z.ZodType): object {
  const { $schema: _, ...json } = z.toJSONSchema(from, { io: "input", unrepresentable: "any" }) as Record<
    string,
    unknown
  >;
  return json;
}
