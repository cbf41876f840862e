import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { closeSync, openSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { SHARED_NETWORK } from "../../src/drivers/docker/shared-network.ts";
import { until } from "../contract/driver-backend.ts";
import { docker } from "./docker-cli.ts";

const run = promisify(execFile);
const script = (name: string) => fileURLToPath(new URL(`../../../../scripts/${name}`, import.meta.url));

/**
 * A second Docker engine beside the machine's own, with nothing in common but the kernel. It has a bridge of its own:
 * told to have none, it would delete the other engine's.
 */
export class OwnEngine implements AsyncDisposable {
  readonly host: string;
  #process: ChildProcess | undefined;
  readonly #directory: string;
  readonly #bridge: string;

  private constructor(host: string, directory: string, bridge: string) {
    this.host = host;
    this.#directory = directory;
    this.#bridge = bridge;
  }

  static async start(config: object = {}): Promise<OwnEngine> {
    const directory = await mkdtemp(join(tmpdir(), "aido-engine-"));
    const at = (name: string) => join(directory, name);
    const host = `unix://${at("docker.sock")}`;
    await writeFile(at("daemon.json"), JSON.stringify(config));
    const engine = new OwnEngine(host, directory, await addBridge());
    try {
      await engine.restart();
    } catch (error) {
      await engine[Symbol.asyncDispose]();
      throw error;
    }
    return engine;
  }

  /** With the containers and images that it had; those ran no longer when it was stopped. */
  async restart(): Promise<void> {
    const at = (name: string) => join(this.#directory, name);
    const { host } = this;
    // Killed ones leave them, and the next takes whoever has their numbers now for those that it needs.
    for (const name of ["docker.pid", "exec/containerd/containerd.pid"]) await rm(at(name), { force: true });
    const log = openSync(at("log"), "w");
    const child = spawn(
      "dockerd",
      [
        ...["--config-file", at("daemon.json"), "--host", host, "--pidfile", at("docker.pid")],
        ...["--data-root", at("data"), "--exec-root", at("exec"), "--bridge", this.#bridge],
        ...["--iptables=false", "--ip-forward=false", "--ip-masq=false"],
        ...["--containerd-namespace", "aido-test", "--containerd-plugins-namespace", "aido-test-plugins"],
      ],
      { stdio: ["ignore", log, log] },
    );
    closeSync(log);
    this.#process = child;
    await until(
      "the engine answers",
      async () => {
        if (child.exitCode !== null) throw new Error(await readFile(at("log"), "utf8"));
        return docker(["version"], { host }).then(
          () => true,
          () => false,
        );
      },
      60_000,
    );
  }

  /** As `restart`, with other settings. */
  async configure(config: object): Promise<void> {
    await this.stop();
    await writeFile(join(this.#directory, "daemon.json"), JSON.stringify(config));
    await this.restart();
  }

  async stop(): Promise<void> {
    await this.#end("SIGTERM");
  }

  /** At once and without a word, in the middle of whatever it does. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** Makes one of the test images in this engine. */
  async addImage(name: string): Promise<void> {
    await run(script("test-images.sh"), [name], { env: { ...process.env, DOCKER_HOST: this.host } });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // An engine leaves its bridges on the machine.
    await docker(["network", "rm", SHARED_NETWORK], { host: this.host }).catch(() => undefined);
    await this.stop();
    // One that was killed has left them.
    for (const mount of await mountsBeneath(this.#directory)) await run("umount", [mount]);
    await run("ip", ["link", "delete", this.#bridge]);
    await rm(this.#directory, { recursive: true, force: true, maxRetries: 5 });
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    child.kill(signal);
    await ended;
  }
}

/** The innermost first. */
async function mountsBeneath(directory: string): Promise<readonly string[]> {
  const lines = (await readFile("/proc/self/mounts", "utf8")).split("\n");
  const targets = lines.map((line) => line.split(" ")[1] ?? "");
  return targets.filter((target) => target.startsWith(`${directory}/`)).toReversed();
}

/** Its addresses are of the range set aside for measuring networks, which no real one uses. */
async function addBridge(): Promise<string> {
  const [high = 0, low = 0] = randomBytes(2);
  const name = `aidot${high.toString(16)}x${low.toString(16)}`;
  await run("ip", ["link", "add", name, "type", "bridge"]);
  await run("ip", ["address", "add", `198.${18 + (high % 2)}.${low}.1/24`, "dev", name]);
  return name;
}

/** Where gVisor's runtime is; fetched when it is not there yet. */
export async function findRunsc(): Promise<string> {
  const { stdout } = await run(script("test-engine.sh"), ["runsc"]);
  return stdout.trim();
}
