import { Agent as HttpAgent, type AgentOptions as HttpAgentOptions } from "node:http";
import { inspect } from "node:util";
import type Docker from "dockerode";
import { orAborted } from "../../core/supervisor/time-limit.ts";
import { type EngineAddress, toEngineAddress } from "./engine-address.ts";
import { type EngineInfo, readEngineInfo } from "./engine-info.ts";
import type { FirstAnswers, RawNetwork } from "./first-questions.ts";
import { loadDockerode } from "./load-dockerode.ts";
import { type EngineAction, translateDockerError } from "./translate-docker-error.ts";

export interface EngineOptions {
  /** As in DOCKER_HOST; undefined is the machine's own engine. */
  readonly host?: string | undefined;
  /** Directory with ca.pem, cert.pem and key.pem, as in DOCKER_CERT_PATH. */
  readonly certPath?: string | undefined;
  /** What the engine says of itself, when it was asked already. */
  readonly answers?: FirstAnswers | undefined;
}

const REQUEST_TIMEOUT_MS = 60_000;

/** The connection to one Docker engine: bounded requests, translated errors, what the engine can do. */
export class Engine {
  readonly docker: Docker;
  readonly address: EngineAddress;
  readonly #agent: HttpAgent;
  /** Each is fresh once. */
  #answers: Partial<FirstAnswers>;
  #info: Promise<EngineInfo> | undefined;

  constructor(options: EngineOptions) {
    this.address = toEngineAddress(options.host, options.certPath);
    this.#answers = options.answers ?? {};
    const secure = this.address.options.protocol === "https";
    const connections = { keepAlive: true, maxFreeSockets: 8 };
    // Without TLS there is no server's name, and working one out takes milliseconds; so does loading TLS.
    const plain = () => new HttpAgent({ ...connections, servername: "" } as HttpAgentOptions);
    this.#agent = secure ? new (process.getBuiltinModule("node:https").Agent)(connections) : plain();
    // The library describes each request in full for its debug log, even when there is none. With every socket of
    // the agent and all that those refer to, this takes longer than most requests.
    Object.defineProperty(this.#agent, inspect.custom, { value: () => "Agent" });
    const agent = this.address.options.protocol === "ssh" ? {} : { agent: this.#agent };
    this.docker = new (loadDockerode())({ ...this.address.options, ...agent } as Docker.DockerOptions);
  }

  /**
   * One request. The signal it is given ends with the caller's, with the time limit, and never after it resolved.
   * `graceMs`: how long it is still waited for after the caller's abort, because the engine does it all the same.
   */
  async call<T>(
    action: EngineAction,
    request: (signal: AbortSignal) => Promise<T>,
    options: { signal?: AbortSignal | undefined; timeoutMs?: number; graceMs?: number } = {},
  ): Promise<T> {
    const { signal, timeoutMs = REQUEST_TIMEOUT_MS, graceMs = 0 } = options;
    signal?.throwIfAborted();
    const controller = new AbortController();
    let grace: NodeJS.Timeout | undefined;
    const abort = () => controller.abort(signal?.reason);
    const cancel = () => {
      if (graceMs === 0) abort();
      else grace = setTimeout(abort, graceMs);
    };
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      controller.abort();
    }, timeoutMs);
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      // Not every request of the library takes a signal.
      return await orAborted(request(controller.signal), controller.signal);
    } catch (thrown) {
      if (signal?.aborted === true) throw signal.reason;
      throw translateDockerError(thrown, {
        ...action,
        address: this.address.text,
        ...(timedOut ? { timeoutMs } : {}),
      });
    } finally {
      clearTimeout(timer);
      clearTimeout(grace);
      signal?.removeEventListener("abort", cancel);
    }
  }

  /** Asked once for all callers, so that no one's abort is another's; `fresh` asks again, for those who report to people. */
  async info(options: { signal?: AbortSignal | undefined; fresh?: boolean } = {}): Promise<EngineInfo> {
    const { signal } = options;
    signal?.throwIfAborted();
    if (this.#info === undefined || options.fresh === true) {
      const { info, ...rest } = this.#answers;
      this.#answers = rest;
      const read = readEngineInfo(this, info);
      this.#info = read;
      read.catch(() => {
        if (this.#info === read) this.#info = undefined;
      });
    }
    return orAborted(this.#info, signal);
  }

  async networks(signal?: AbortSignal): Promise<readonly RawNetwork[]> {
    const { networks, ...rest } = this.#answers;
    this.#answers = rest;
    const answered = networks && (await orAborted(networks, signal));
    if (answered !== undefined) return answered;
    const action = { doing: "asking Docker what it can do" };
    return await this.call(action, (abortSignal) => this.docker.listNetworks({ abortSignal }), { signal });
  }

  close(): void {
    this.#agent.destroy();
  }
}
