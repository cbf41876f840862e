import { z } from "zod";
import type { Operation } from "./operation.ts";

interface JsonSchema {
  type?: string | string[];
  properties?: Record<string, JsonSchema>;
  required?: string[];
  enum?: unknown[];
  const?: unknown;
  anyOf?: JsonSchema[];
  items?: JsonSchema;
  additionalProperties?: JsonSchema | boolean;
  minimum?: number;
  maximum?: number;
  pattern?: string;
  format?: string;
}

/** A longer one is for machines. */
const MAX_PATTERN = 40;

const INTRODUCTION = `# HTTP API

What \`aido serve\` answers. [The guide](../guides/server.md) shows it at work; a running server has the same as
\`/openapi.json\` (OpenAPI 3.1) and as a page at \`/docs\`. On the wire a sandbox's id is called \`containerId\`; wherever it is
asked for, a name or a unique beginning of an id will do.

- **Access**: \`Authorization: Bearer <key>\` or \`X-API-Key: <key>\`. A key has scopes: \`read\`, \`write\`, \`admin\`. Sandboxes of other
  owners do not exist for you; \`admin\` sees all.
- **Errors**: \`{"error": {"code", "message", "details": {"cause"}, "hint", "requestId"}}\`. [Codes](errors.md) are stable; the status follows from the
  code. A command that fails is no error: it is \`200\` with \`"status": "error"\`.
- **Sidecar**: below \`/sidecar/<sandboxId>\` each sandbox of the profile \`sidecar\` answers for itself. The token that \`POST /api/sandbox\` shows
  once opens it, no key does, and the token opens nothing else. Failures there are \`{"success": false, "error": {"code", "message"}}\`. The id must be whole.
- **Repeating**: \`POST /api/sandbox\` and \`POST /api/sandbox/exec\` take an \`Idempotency-Key\` header, the latter also an \`id\`: the same request again
  does nothing more and gives the first answer; another request with the same key or id is refused.
- **Headers**: every reply has \`Aido-Request-Id\`, which the log and the audit log know; you may choose it. With a rate limit there are
  \`RateLimit-Limit\`, \`RateLimit-Remaining\` and \`RateLimit-Reset\`; whatever can be tried again has \`Retry-After\`.
- **Streams** of server-sent events carry comments to stay alive. Output travels as base64 with its byte offset; the event id is \`stdout:stderr\`, so a
  reconnect with \`Last-Event-ID\` goes on without a gap.
- **WebSocket** messages are JSON: \`{"type": "output", "stream", "offset", "data"}\`, \`{"type": "end", …}\`, \`{"type": "error", …}\` from the server;
  \`{"type": "stdin", "data", "encoding"?}\`, \`{"type": "closeStdin"}\`, \`{"type": "resize", "rows", "cols"}\`, \`{"type": "signal", "signal"?, "graceMs"?}\` to it. Binary
  messages are standard input. Browsers, which cannot set headers there, add \`?key=\`.
`;

/** The reference page, made from the operations so that it cannot say anything else. */
export function renderHttpReference(operations: readonly Operation[]): string {
  const tags = [...new Set(operations.map(({ tag }) => tag))];
  const sections = tags.map((tag) => {
    const own = operations.filter((operation) => operation.tag === tag);
    return `## ${tag.charAt(0).toUpperCase()}${tag.slice(1)}\n\n${own.map(section).join("\n")}`;
  });
  return `${INTRODUCTION}\n${sections.join("\n")}`;
}

function section(operation: Operation): string {
  const parts = [
    `### ${operation.method.toUpperCase()} ${operation.path}\n`,
    `${operation.summary}. Scope: \`${operation.scope}\`.\n`,
  ];
  if (operation.query !== undefined) parts.push(`Query:\n\n${fields(operation.query)}`);
  if (operation.body !== undefined) parts.push(`Body:\n\n${fields(operation.body)}`);
  if (operation.rawBody !== undefined) parts.push(`Body: \`${operation.rawBody}\`\n`);
  for (const [status, reply] of Object.entries(operation.replies)) {
    const names = reply.schema === undefined ? [] : Object.keys(schemaOf(reply.schema).properties ?? {});
    const shape = names.length === 0 ? "" : `: ${names.map((name) => `\`${name}\``).join(", ")}`;
    const type = reply.contentType === undefined ? "" : ` (\`${reply.contentType}\`)`;
    parts.push(`\`${status}\` ${reply.description}${type}${shape}.\n`);
  }
  return parts.join("\n");
}

function fields(schema: z.ZodType, indent = ""): string {
  return list(schemaOf(schema), indent);
}

function list(schema: JsonSchema, indent: string): string {
  const rows = Object.entries(schema.properties ?? {}).map(([name, value]) => {
    const must = schema.required?.includes(name) === true ? ", required" : "";
    const own = `${indent}- \`${name}\`: ${typeName(value)}${must}\n`;
    return value.properties === undefined ? own : own + list(value, `${indent}  `);
  });
  return rows.join("");
}

function typeName(schema: JsonSchema): string {
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  if (schema.enum !== undefined)
    return schema.enum.map((value) => `\`${JSON.stringify(value)}\``).join(" or ");
  if (schema.anyOf !== undefined) return schema.anyOf.map(typeName).join(" or ");
  if (schema.type === "array") return `list of ${typeName(schema.items ?? {})}`;
  if (schema.format === "date-time") return "date and time as in `2026-01-31T12:00:00Z`";
  const { additionalProperties: values } = schema;
  if (schema.type === "object" && schema.properties === undefined && typeof values === "object") {
    return `map of names to ${typeName(values)}`;
  }
  const bounds = [
    schema.minimum === undefined || schema.minimum === Number.MIN_SAFE_INTEGER
      ? ""
      : ` from ${schema.minimum}`,
    schema.maximum === undefined || schema.maximum === Number.MAX_SAFE_INTEGER ? "" : ` to ${schema.maximum}`,
    schema.pattern === undefined || schema.pattern.length > MAX_PATTERN ? "" : ` like \`${schema.pattern}\``,
  ];
  return `${[schema.type ?? "any value"].flat().join(" or ")}${bounds.join("")}`;
}

function schemaOf(schema: z.ZodType): JsonSchema {
  return z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as JsonSchema;
}
