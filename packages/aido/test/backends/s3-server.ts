import { readdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { S3Settings } from "../../src/objects/s3/s3-client.ts";
import { ServerProcess } from "./server-process.ts";

const script = fileURLToPath(new URL("../../../../scripts/test-s3.sh", import.meta.url));

/** A real S3 server on 127.0.0.1 with one empty bucket, `snapshots`. */
export class S3Server implements AsyncDisposable {
  readonly bucket = "snapshots";
  readonly #server: ServerProcess;

  private constructor(server: ServerProcess) {
    this.#server = server;
  }

  static async start(): Promise<S3Server> {
    const server = await ServerProcess.start({
      name: "s3",
      argv: (port, directory) => [script, "serve", String(port), directory, "snapshots"],
      answers: async (url) => {
        const answer = await fetch(url).catch(() => undefined);
        await answer?.body?.cancel();
        return answer !== undefined;
      },
      limitMs: 120_000,
    });
    return new S3Server(server);
  }

  get port(): number {
    return this.#server.port;
  }

  get endpoint(): string {
    return this.#server.url;
  }

  /** As a process is told by its environment. */
  get env(): Readonly<Record<string, string>> {
    return {
      AWS_ENDPOINT_URL_S3: this.endpoint,
      AWS_ACCESS_KEY_ID: "S3RVER",
      AWS_SECRET_ACCESS_KEY: "S3RVER",
    };
  }

  /** The objects that it keeps, as they lie in its directory. */
  async objects(): Promise<string[]> {
    const found = await readdir(this.#server.directory, { recursive: true });
    return found.filter((name) => name.endsWith("._S3rver_object"));
  }

  settings(changes: Partial<S3Settings> = {}): S3Settings {
    return {
      endpoint: this.endpoint,
      region: "us-east-1",
      pathStyle: undefined,
      credentials: () => ({ accessKeyId: "S3RVER", secretAccessKey: "S3RVER" }),
      ...changes,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
  }
}
