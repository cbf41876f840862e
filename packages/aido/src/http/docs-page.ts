import { z } from "zod";
import type { Operation } from "./operation.ts";

const STYLE = `
  :root { color-scheme: light dark; --line: #8884; --dim: #888; --accent: #0a7; }
  body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
  h1 { margin-bottom: 0 } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); text-transform: capitalize }
  details { border: 1px solid var(--line); border-radius: 6px; margin: .5rem 0; padding: .4rem .8rem }
  summary { cursor: pointer } summary code { font-weight: 600 }
  .method { display: inline-block; width: 4.5rem; color: var(--accent); font: 600 13px monospace }
  .dim { color: var(--dim) } pre { overflow-x: auto; background: #8881; padding: .6rem; border-radius: 4px; font-size: 13px }
`;

/** The API for a browser: one page, no scripts, nothing from elsewhere. */
export function docsPage(operations: readonly Operation[], version: string): string {
  const tags = [...new Set(operations.map((operation) => operation.tag))];
  const sections = tags.map((tag) => {
    const own = operations.filter((operation) => operation.tag === tag);
    return `<h2 id="${escapeHtml(tag)}">${escapeHtml(tag)}</h2>${own.map(entry).join("")}`;
  });
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Aido API</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>${STYLE}</style></head><body>
<h1>Aido API</h1><p class="dim">version ${escapeHtml(version)} · <a href="/openapi.json">openapi.json</a> ·
${tags.map((tag) => `<a href="#${escapeHtml(tag)}">${escapeHtml(tag)}</a>`).join(" · ")}</p>
<p>Send <code>Authorization: Bearer &lt;key&gt;</code> when the server asks for a key. Errors are
<code>{"error":{"code","message","hint","details","requestId"}}</code>.</p>${sections.join("")}</body></html>`;
}

function entry(operation: Operation): string {
  const parts = [
    `<p>${escapeHtml(operation.summary)}. <span class="dim">Scope: ${operation.scope}.</span></p>`,
  ];
  if (operation.query !== undefined) parts.push(block("Query", operation.query));
  if (operation.body !== undefined) parts.push(block("Body", operation.body));
  if (operation.rawBody !== undefined)
    parts.push(`<p>Body: <code>${escapeHtml(operation.rawBody)}</code></p>`);
  for (const [status, reply] of Object.entries(operation.replies)) {
    parts.push(`<p><code>${status}</code> ${escapeHtml(reply.description)}</p>`);
    if (reply.schema !== undefined) parts.push(block("Reply", reply.schema));
  }
  return `<details><summary><span class="method">${operation.method.toUpperCase()}</span>
<code>${escapeHtml(operation.path)}</code> <span class="dim">${escapeHtml(operation.summary)}</span></summary>${parts.join("")}</details>`;
}

function block(title: string, schema: z.ZodType): string {
  const json = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
  delete json.$schema;
  return `<details><summary>${title}</summary><pre>${escapeHtml(JSON.stringify(json, null, 2))}</pre></details>`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
}
