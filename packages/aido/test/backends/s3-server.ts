import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { S3Settings } from "../../src/objects/s3/s3-client.ts";
import { until } from "../contract/driver-backend.ts";
import { freePort } from "./registry.ts";

const script = fileURLToPath(new URL("../../../../scripts/test-s3.sh", import.meta.url));

/** A real S3 server on 127.0.0.1 with one empty bucket, `snapshots`, and a directory of its own. */
export class S3Server implements AsyncDisposable {
  readonly bucket = "snapshots";
  readonly port: number;
  readonly #process: ChildProcess;
  readonly #directory: string;

  private constructor(port: number, process: ChildProcess, directory: string) {
    this.port = port;
    this.#process = process;
    this.#directory = directory;
  }

  static async start(): Promise<S3Server> {
    const directory = await mkdtemp(join(tmpdir(), "aido-s3-"));
    const port = await freePort();
    const child = spawn(script, ["serve", String(port), directory, "snapshots"], {
      stdio: ["ignore", "ignore", "inherit"],
    });
    const server = new S3Server(port, child, directory);
    try {
      await until(
        "the S3 server answers",
        async () => {
          if (child.exitCode !== null) throw new Error(`scripts/test-s3.sh ended with ${child.exitCode}`);
          const answer = await fetch(server.endpoint).catch(() => undefined);
          await answer?.body?.cancel();
          return answer !== undefined;
        },
        120_000,
      );
    } catch (error) {
      await server[Symbol.asyncDispose]();
      throw error;
    }
    return server;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** As a process is told by its environment. */
  get env(): Readonly<Record<string, string>> {
    return {
      AWS_ENDPOINT_URL_S3: this.endpoint,
      AWS_ACCESS_KEY_ID: "S3RVER",
      AWS_SECRET_ACCESS_KEY: "S3RVER",
    };
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
    const child = this.#process;
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
      const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
      child.kill("SIGKILL");
      await ended;
    }
    await rm(this.#directory, { recursive: true, force: true });
  }
}
