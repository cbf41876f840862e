import { request } from "node:http";
import { connect } from "node:net";
import type Docker from "dockerode";
import type { RawInfo } from "./engine-info.ts";

const LIMIT_MS = 10_000;

/** What an engine said when it was asked first. Undefined for what it did not answer: whoever needs it asks again. */
export interface FirstAnswers {
  readonly info: Promise<RawInfo | undefined>;
  readonly networks: Promise<readonly RawNetwork[] | undefined>;
}

export interface RawNetwork {
  readonly Name: string;
  readonly Driver: string;
}

/**
 * What a launch has to know of an engine, asked without the engine's library: a command that is about to launch a sandbox
 * asks before it loads anything, and the engine answers meanwhile.
 */
export function askFirst(engine: Docker.DockerOptions): FirstAnswers {
  return { info: ask<RawInfo>(engine, "/info"), networks: ask<RawNetwork[]>(engine, "/networks") };
}

function ask<T>(engine: Docker.DockerOptions, path: string): Promise<T | undefined> {
  const { protocol, socketPath, host = "localhost", port } = engine;
  if (protocol !== "http") return Promise.resolve(undefined);
  // Without an agent, which would take milliseconds to find that there is no server's name for TLS.
  const createConnection = () =>
    socketPath === undefined ? connect(Number(port), host) : connect(socketPath);
  return new Promise((resolve) => {
    const asked = request({ host, path, timeout: LIMIT_MS, createConnection }, (reply) => {
      const parts: Buffer[] = [];
      reply.on("data", (part: Buffer) => parts.push(part));
      reply.on("error", () => resolve(undefined));
      reply.on("end", () => resolve(reply.statusCode === 200 ? parsed<T>(Buffer.concat(parts)) : undefined));
    });
    asked.on("timeout", () => asked.destroy());
    asked.on("error", () => resolve(undefined));
    asked.on("close", () => resolve(undefined));
    asked.end();
  });
}

function parsed<T>(body: Buffer): T | undefined {
  try {
    return JSON.parse(body.toString("utf8")) as T;
  } catch {
    return undefined;
  }
}
