import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** A web server on 127.0.0.1 that keeps what is put, unless a test says how it answers. */
export class WebServer implements AsyncDisposable {
  readonly objects = new Map<string, Buffer>();
  readonly seen: { method: string; url: string; host: string | undefined }[] = [];
  answer: Answer | undefined;
  readonly #server = createServer((request, response) => this.#handle(request, response));

  static async start(): Promise<WebServer> {
    const server = new WebServer();
    await new Promise<void>((resolve) => server.#server.listen(0, "127.0.0.1", resolve));
    return server;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    const { method = "", url = "" } = request;
    this.seen.push({ method, url, host: request.headers.host });
    if (this.answer !== undefined) {
      this.answer(request, response);
      return;
    }
    if (method === "PUT") this.#take(request, response, url);
    else if (method === "DELETE") response.writeHead(this.objects.delete(url) ? 204 : 404).end();
    else {
      const content = this.objects.get(url);
      if (content === undefined) response.writeHead(404).end();
      else
        response
          .writeHead(200, { "content-length": content.length })
          .end(method === "HEAD" ? undefined : content);
    }
  }

  /** All or nothing, as servers do that know the length. */
  #take(request: IncomingMessage, response: ServerResponse, url: string): void {
    if (request.headers["content-length"] === undefined) {
      response.writeHead(411).end();
      return;
    }
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      if (!request.complete) return;
      this.objects.set(url, Buffer.concat(chunks));
      response.writeHead(201).end();
    });
    request.on("error", () => undefined);
  }
}
