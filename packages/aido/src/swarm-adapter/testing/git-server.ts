import { execFileSync, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import {
  createServer as createPlainServer,
  type IncomingMessage,
  type Server as PlainServer,
} from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";

export interface GitServer extends AsyncDisposable {
  /** `https://<address>:<port>` */
  readonly origin: string;
  /** Whom git must trust. */
  readonly certificate: string;
  /** What each request came with. */
  readonly authorizations: readonly (string | undefined)[];
}

/** git's own HTTP backend behind https; only who has the password may read or write. */
export async function startGitServer(
  root: string,
  password: string,
  address = "127.0.0.1",
): Promise<GitServer> {
  const [key, certificate] = [join(root, "key.pem"), join(root, "cert.pem")];
  const subject = ["-subj", `/CN=${address}`, "-addext", `subjectAltName=IP:${address}`, "-days", "2"];
  const args = [
    "req",
    "-x509",
    // Such a key is made at once.
    ...["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"],
    "-nodes",
    "-keyout",
    key,
    "-out",
    certificate,
    ...subject,
  ];
  execFileSync("openssl", args, { stdio: "ignore" });
  const wanted = `Basic ${Buffer.from(`x-access-token:${password}`).toString("base64")}`;
  const authorizations: (string | undefined)[] = [];
  const server = createServer(
    { key: readFileSync(key), cert: readFileSync(certificate) },
    (request, response) => {
      authorizations.push(request.headers.authorization);
      if (request.headers.authorization !== wanted) {
        response.writeHead(401, { "www-authenticate": "Basic" }).end();
        return;
      }
      const url = new URL(request.url ?? "/", "https://x");
      const backend = spawn("git", ["http-backend"], {
        env: {
          PATH: "/usr/local/bin:/usr/bin:/bin",
          HOME: root,
          GIT_PROJECT_ROOT: root,
          GIT_HTTP_EXPORT_ALL: "1",
          PATH_INFO: url.pathname,
          QUERY_STRING: url.search.slice(1),
          REQUEST_METHOD: request.method,
          CONTENT_TYPE: request.headers["content-type"] ?? "",
          HTTP_CONTENT_ENCODING: request.headers["content-encoding"] ?? "",
          REMOTE_USER: "worker",
        },
      });
      request.pipe(backend.stdin);
      const parts: Buffer[] = [];
      backend.stdout.on("data", (part: Buffer) => parts.push(part));
      backend.on("close", () => {
        const answer = Buffer.concat(parts);
        const end = answer.indexOf("\r\n\r\n");
        const headers = answer
          .subarray(0, end)
          .toString()
          .split("\r\n")
          .map((line) => line.split(": ", 2));
        const { Status = "200", ...rest } = Object.fromEntries(headers) as Record<string, string>;
        response.writeHead(Number.parseInt(Status, 10), rest).end(answer.subarray(end + 4));
      });
    },
  );
  const port = await listen(server, address);
  const origin = `https://${address}:${port}`;
  return { origin, certificate, authorizations, [Symbol.asyncDispose]: () => closed(server) };
}

export interface ForgeServer extends AsyncDisposable {
  readonly url: string;
  readonly asked: { method: string; url: string; authorization: string | undefined; body: unknown }[];
}

/** As much of GitHub's API as pull requests need; answers are made by the test. */
export async function startForge(
  answer: (asked: ForgeServer["asked"][number]) => { status: number; body: unknown; location?: string },
  address = "127.0.0.1",
): Promise<ForgeServer> {
  const asked: ForgeServer["asked"] = [];
  const server = createPlainServer(async (request, response) => {
    const text = await bodyOf(request);
    const { authorization } = request.headers;
    const one = {
      method: request.method ?? "",
      url: request.url ?? "",
      authorization,
      body: text === "" ? undefined : JSON.parse(text),
    };
    asked.push(one);
    const { status, body, location } = answer(one);
    response.writeHead(status, {
      "content-type": "application/json",
      ...(location === undefined ? {} : { location }),
    });
    response.end(JSON.stringify(body));
  });
  const port = await listen(server, address);
  return { url: `http://${address}:${port}`, asked, [Symbol.asyncDispose]: () => closed(server) };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const part of request) text += part;
  return text;
}

type AnyServer = Server | PlainServer;

export async function listen(server: AnyServer, address: string): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  return (server.address() as AddressInfo).port;
}

export async function closed(server: AnyServer): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}
