// The product as a server in a process of its own, spoken to over HTTP as any client does.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { temporaryDirectory } from "./product.mjs";

const CLI = new URL("../packages/aido/dist/cli/main.js", import.meta.url).pathname;

/** Runs `action` with a server on Docker; every sandbox it has in the end is deleted. */
export async function withServer(environment, action) {
  const directory = temporaryDirectory();
  const child = spawn(process.execPath, [CLI, "serve", "--port", "0"], {
    env: {
      ...process.env,
      AIDO_DRIVER: "docker",
      AIDO_DATA_DIR: join(directory.path, "data"),
      AIDO_LOG_LEVEL: "error",
      ...environment,
    },
    stdio: ["ignore", "inherit", "pipe"],
  });
  const ended = once(child, "exit");
  try {
    const api = client(await urlOf(child));
    try {
      return await action(api);
    } finally {
      const { sandboxes } = await api("GET", "/api/sandbox?limit=1000");
      await Promise.all(sandboxes.map(({ id }) => api("DELETE", `/api/sandbox/${id}`)));
    }
  } finally {
    child.kill("SIGTERM");
    await ended;
    directory.remove();
  }
}

/** Resolves when so many sandboxes are ready. */
export async function untilReady(api, count) {
  const deadline = Date.now() + 120_000;
  for (;;) {
    const { pool } = await api("GET", "/api/pool");
    if (pool[0]?.ready >= count) return;
    if (Date.now() > deadline) throw new Error(`the pool has ${pool[0]?.ready} of ${count}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

function urlOf(child) {
  return new Promise((resolve, reject) => {
    let text = "";
    child.once("exit", () => reject(new Error(`the server did not start: ${text}`)));
    // Read to the end: a server that cannot write its log would end.
    child.stderr.on("data", (chunk) => {
      text += chunk;
      const match = /Serving on (\S+) /.exec(text);
      if (match !== null) resolve(match[1]);
    });
  });
}

function client(base) {
  const agent = new Agent({ keepAlive: true, maxSockets: 128 });
  return (method, path, body) =>
    new Promise((resolve, reject) => {
      const sent = body === undefined ? undefined : JSON.stringify(body);
      const headers = sent === undefined ? {} : { "content-type": "application/json" };
      const asked = request(base + path, { method, agent, headers }, (reply) => {
        let text = "";
        reply.setEncoding("utf8");
        reply.on("data", (chunk) => {
          text += chunk;
        });
        reply.on("error", reject);
        reply.on("end", () => {
          const value = JSON.parse(text);
          if (reply.statusCode < 300) resolve(value);
          else reject(new Error(`${method} ${path}: ${reply.statusCode} ${value.error?.message}`));
        });
      });
      asked.on("error", reject);
      asked.end(sent);
    });
}
