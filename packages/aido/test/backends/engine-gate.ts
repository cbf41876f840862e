import { rm } from "node:fs/promises";
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";

const ENGINE = (process.env["DOCKER_HOST"] ?? "").replace(/^unix:\/\//, "") || "/var/run/docker.sock";

export interface Hold {
  /** Of `POST /containers/create?name=x`, without the version. */
  readonly call: RegExp;
  /** Whether the engine has done what was asked when the call is held: then its answer is what does not come. */
  readonly isDone: boolean;
}

/** Stands between one aido and the engine, passes every call on, and holds those that it is told to. */
export class EngineGate implements AsyncDisposable {
  readonly host: string;
  /** The containers that were made through it, told or not. */
  readonly made: string[] = [];
  /** How many calls wait here, or waited when their caller went away. */
  held = 0;
  readonly #hold: Hold | undefined;
  readonly #path: string;
  readonly #server: Server;
  readonly #released: Promise<void>;
  #release: () => void = () => undefined;

  private constructor(path: string, hold: Hold | undefined) {
    this.#path = path;
    this.host = `unix://${path}`;
    this.#hold = hold;
    this.#server = createServer((near, answer) => void this.#pass(near, answer));
    this.#released = new Promise((resolve) => {
      this.#release = resolve;
    });
  }

  static async open(path: string, hold?: Hold): Promise<EngineGate> {
    const gate = new EngineGate(path, hold);
    await new Promise<void>((resolve, reject) => {
      gate.#server.once("error", reject);
      gate.#server.listen(path, resolve);
    });
    return gate;
  }

  /** Lets what is held go on, and everything after it. */
  release(): void {
    this.#release();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
    await rm(this.#path, { force: true });
  }

  async #pass(near: IncomingMessage, answer: ServerResponse): Promise<void> {
    const { method = "", url = "", headers } = near;
    const call = `${method} ${url.replace(/^\/v[\d.]+/, "")}`;
    // A caller that is gone has asked for nothing that was not passed on yet.
    if (!(await this.#mayGoOn(call, false, answer))) return;
    const far = request({ socketPath: ENGINE, method, path: url, headers }, (reply) => {
      void this.#bring(call, reply, answer).catch(() => answer.destroy());
    });
    far.on("error", () => answer.destroy());
    answer.on("close", () => far.destroy());
    near.pipe(far);
  }

  /** False when the caller has gone away meanwhile. */
  async #mayGoOn(call: string, isDone: boolean, answer: ServerResponse): Promise<boolean> {
    if (this.#hold !== undefined && this.#hold.isDone === isDone && this.#hold.call.test(call)) {
      this.held += 1;
      const gone = new Promise<void>((resolve) => answer.once("close", () => resolve()));
      await Promise.race([this.#released, gone]);
    }
    return !answer.destroyed;
  }

  async #bring(call: string, reply: IncomingMessage, answer: ServerResponse): Promise<void> {
    const isMade = call.startsWith("POST /containers/create") && reply.statusCode === 201;
    const body = isMade ? Buffer.concat(await reply.toArray()) : undefined;
    if (body !== undefined) this.made.push((JSON.parse(body.toString()) as { Id: string }).Id);
    if (!(await this.#mayGoOn(call, true, answer))) {
      reply.destroy();
      return;
    }
    answer.writeHead(reply.statusCode ?? 500, reply.headers);
    if (body !== undefined) answer.end(body);
    else reply.pipe(answer);
    answer.flushHeaders();
  }
}
