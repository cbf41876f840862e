import type { Duplex } from "node:stream";
import { AidoError, isAidoError, toAidoError } from "@aido/sdk/protocol";
import type { Clock } from "../clock.ts";
import type { Logger } from "../logger.ts";
import { type ExecEvent, SupervisorConnection } from "./supervisor-connection.ts";
import { withTimeLimit } from "./time-limit.ts";

const CONNECT_LIMIT_MS = 3_000;
const INSPECT_LIMIT_MS = 3_000;
const REQUEST_LIMIT_MS = 15_000;
const FIRST_PAUSE_MS = 20;
const LISTEN_MS = 20;
const LAST_PAUSE_MS = 1_000;
/** Connections in a row that broke the protocol or refused the token, after which there is no point in another. */
const MAX_VIOLATIONS = 3;
/** A connection that was of use for so long begins a new row, however it ended. */
const GOOD_LIFE_MS = 60_000;

export interface SupervisorOptions {
  connect: (signal: AbortSignal) => Promise<Duplex>;
  /** Whether the container runs; a rejection means it cannot be told now. */
  isRunning: () => Promise<boolean>;
  /** 32 bytes in hex. */
  token: string;
  clock: Clock;
  logger: Logger;
}

export interface LinkEvents {
  onExecEvent: (event: ExecEvent) => void;
  /** Before any request is sent on it. `isSameBoot` is false when the supervisor has started anew. */
  onConnected: (connection: SupervisorConnection, isSameBoot: boolean) => void;
  /** The container is gone, or what answers is not our supervisor. */
  onGone: (error: AidoError) => void;
  /** Whether a lost connection is to be replaced before anybody asks. */
  isNeeded: () => boolean;
}

/** Keeps one connection to a supervisor: opened when first needed, opened again for as long as the container runs. */
export class SupervisorLink {
  readonly #options: SupervisorOptions;
  readonly #events: LinkEvents;
  readonly #token: Buffer;
  readonly #closed = new AbortController();
  #current: SupervisorConnection | undefined;
  #opening: Promise<SupervisorConnection> | undefined;
  #boot: bigint | undefined;
  #violations = 0;
  #connectedAt = 0;
  #shortLives = 0;
  #lastFailure: AidoError | undefined;

  constructor(options: SupervisorOptions, events: LinkEvents) {
    this.#options = options;
    this.#events = events;
    this.#token = Buffer.from(options.token, "hex");
  }

  /** The open connection, if there is one now. */
  get current(): SupervisorConnection | undefined {
    return this.#current?.isClosed === false ? this.#current : undefined;
  }

  async connection(signal?: AbortSignal): Promise<SupervisorConnection> {
    const current = this.current;
    if (current !== undefined) return current;
    const { clock } = this.#options;
    const limit = { clock, limitMs: REQUEST_LIMIT_MS, what: "Reaching the sandbox's supervisor", signal };
    try {
      return await withTimeLimit(limit, () => this.#open());
    } catch (error) {
      if (!isAidoError(error, "DEADLINE_EXCEEDED") || this.#lastFailure === undefined) throw error;
      if (this.#lastFailure.code === "QUOTA_EXCEEDED") throw this.#lastFailure;
      const message = `The sandbox runs but cannot be reached: ${this.#lastFailure.message}`;
      throw new AidoError("DEADLINE_EXCEEDED", message, { cause: this.#lastFailure });
    }
  }

  close(): void {
    this.#closed.abort(shuttingDown());
    this.#current?.close();
  }

  #open(): Promise<SupervisorConnection> {
    this.#opening ??= this.#connectUntilGone().finally(() => {
      this.#opening = undefined;
    });
    // Also reached without anybody waiting, when live execs need it.
    this.#opening.catch(() => undefined);
    return this.#opening;
  }

  async #connectUntilGone(): Promise<SupervisorConnection> {
    const { clock, logger } = this.#options;
    // One that is closed again and again as soon as it is open must not keep a processor busy.
    if (this.#shortLives > 1) {
      await clock.sleep(Math.min(FIRST_PAUSE_MS * 2 ** this.#shortLives, LAST_PAUSE_MS), this.#closed.signal);
    }
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LAST_PAUSE_MS)) {
      this.#closed.signal.throwIfAborted();
      try {
        return await this.#connectOnce();
      } catch (thrown) {
        const error = toAidoError(thrown);
        logger.debug({ event: "supervisor.connect", outcome: "failed", code: error.code }, error.message);
        if (this.#closed.signal.aborted) throw shuttingDown();
        this.#lastFailure = error;
        this.#count(error);
        if (this.#violations >= MAX_VIOLATIONS) throw this.#gone(error);
        if (await this.#hasEnded()) throw this.#gone(containerGone(error));
      }
      await clock.sleep(pauseMs, this.#closed.signal);
    }
  }

  async #connectOnce(): Promise<SupervisorConnection> {
    const { clock, connect } = this.#options;
    const stream = await withTimeLimit(
      { clock, limitMs: CONNECT_LIMIT_MS, what: "Connecting to the sandbox", signal: this.#closed.signal },
      async (signal) => {
        const opened = await connect(signal);
        // Too late: whoever waited has gone.
        if (signal.aborted) opened.destroy();
        return opened;
      },
    );
    const connection = await SupervisorConnection.open(
      {
        stream,
        token: this.#token,
        clock,
        listenMs: this.#lastFailure === undefined ? 0 : LISTEN_MS,
        onExecEvent: this.#events.onExecEvent,
        onClose: (closed, error) => this.#onClose(closed, error),
      },
      this.#closed.signal,
    );
    if (connection.failure !== undefined) throw connection.failure;
    const isSameBoot = this.#boot === undefined || this.#boot === connection.boot;
    this.#boot = connection.boot;
    this.#current = connection;
    this.#connectedAt = clock.now().getTime();
    this.#lastFailure = undefined;
    this.#events.onConnected(connection, isSameBoot);
    return connection;
  }

  #onClose(connection: SupervisorConnection, error: AidoError): void {
    if (this.#current !== connection) return;
    this.#current = undefined;
    if (this.#closed.signal.aborted) return;
    const livedMs = this.#options.clock.now().getTime() - this.#connectedAt;
    if (livedMs >= GOOD_LIFE_MS || !isViolation(error)) this.#violations = 0;
    this.#count(error);
    this.#shortLives = livedMs < LAST_PAUSE_MS ? this.#shortLives + 1 : 0;
    this.#options.logger.debug({ event: "supervisor.connection", outcome: "lost" }, error.message);
    if (this.#violations >= MAX_VIOLATIONS) this.#gone(error);
    else if (this.#events.isNeeded()) void this.#open();
  }

  #count(error: AidoError): void {
    if (!isViolation(error)) return;
    this.#violations += 1;
    this.#options.logger.warn({ event: "supervisor.protocol", outcome: "failed" }, error.message);
  }

  async #hasEnded(): Promise<boolean> {
    const { clock, isRunning } = this.#options;
    try {
      const limit = { clock, limitMs: INSPECT_LIMIT_MS, what: "Asking for the sandbox's state" };
      return !(await withTimeLimit(limit, isRunning));
    } catch {
      return false;
    }
  }

  #gone(error: AidoError): AidoError {
    this.#events.onGone(error);
    return error;
  }
}

function isViolation(error: AidoError): boolean {
  return error.code === "FORBIDDEN" || "problem" in error.details;
}

function containerGone(cause: AidoError): AidoError {
  return new AidoError("CONTAINER_LOST", "The sandbox's container is no longer running", {
    hint: "See why with `aido inspect`, and start it again with `aido start`.",
    details: { gone: true },
    cause,
  });
}

function shuttingDown(): AidoError {
  return new AidoError("SHUTTING_DOWN", "Aido is shutting down");
}
