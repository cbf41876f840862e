import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../contract/driver-backend.ts";

export interface ServerCommand {
  /** For people, and for the name of its directory. */
  name: string;
  /** Told its port and an empty directory of its own. */
  argv(port: number, directory: string): readonly string[] | Promise<readonly string[]>;
  answers(url: string): Promise<boolean>;
  limitMs?: number;
}

/** Another program's server on 127.0.0.1, with a directory of its own; both are gone with it. */
export class ServerProcess implements AsyncDisposable {
  readonly port: number;
  readonly #process: ChildProcess;
  readonly directory: string;

  private constructor(port: number, process: ChildProcess, directory: string) {
    this.port = port;
    this.#process = process;
    this.directory = directory;
  }

  static async start(command: ServerCommand): Promise<ServerProcess> {
    const directory = await mkdtemp(join(tmpdir(), `aido-${command.name}-`));
    const port = await freePort();
    const [program = "", ...args] = await command.argv(port, directory);
    const child = spawn(program, args, { stdio: ["ignore", "ignore", "inherit"] });
    const server = new ServerProcess(port, child, directory);
    let failed: Error | undefined;
    child.on("error", (error) => {
      failed = error;
    });
    try {
      await until(
        `${command.name} answers`,
        async () => {
          if (failed !== undefined) throw failed;
          if (child.exitCode !== null) throw new Error(`${program} ended with ${child.exitCode}`);
          return command.answers(server.url);
        },
        command.limitMs,
      );
    } catch (error) {
      await server[Symbol.asyncDispose]();
      throw error;
    }
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const child = this.#process;
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
      const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
      child.kill("SIGKILL");
      await ended;
    }
    await rm(this.directory, { recursive: true, force: true });
  }
}

/** A port that nothing listened on a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise<void>((resolve) => server.close(() => resolve()));
  if (address === null || typeof address === "string") throw new Error("no port was given");
  return address.port;
}
