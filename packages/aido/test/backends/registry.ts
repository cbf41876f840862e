import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../contract/driver-backend.ts";

/** A real image registry on 127.0.0.1, with a directory of its own. */
export class Registry implements AsyncDisposable {
  readonly port: number;
  readonly #process: ChildProcess;
  readonly #directory: string;

  private constructor(port: number, process: ChildProcess, directory: string) {
    this.port = port;
    this.#process = process;
    this.#directory = directory;
  }

  static async start(): Promise<Registry> {
    const directory = await mkdtemp(join(tmpdir(), "aido-registry-"));
    const port = await freePort();
    const config = join(directory, "config.yml");
    await writeFile(
      config,
      `version: 0.1
log: { level: error }
storage: { filesystem: { rootdirectory: ${join(directory, "data")} } }
http: { addr: "127.0.0.1:${port}" }
`,
    );
    const child = spawn("docker-registry", ["serve", config], { stdio: "ignore" });
    const registry = new Registry(port, child, directory);
    let failed: Error | undefined;
    child.on("error", (error) => {
      failed = error;
    });
    try {
      await until("the registry answers", async () => {
        if (failed !== undefined) throw failed;
        const answer = await fetch(`http://127.0.0.1:${port}/v2/`).catch(() => undefined);
        return answer?.ok === true;
      });
    } catch (error) {
      await registry[Symbol.asyncDispose]();
      throw error;
    }
    return registry;
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

/** A port that nothing listened on a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise<void>((resolve) => server.close(() => resolve()));
  if (address === null || typeof address === "string") throw new Error("no port was given");
  return address.port;
}
