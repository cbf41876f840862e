import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { AidoError } from "@aido/sdk/protocol";
import type Docker from "dockerode";
import { SYSTEM_SOCKET } from "./system-socket.ts";

export interface EngineAddress {
  /** For people. */
  readonly text: string;
  /** Whether the engine shares this machine's file system. */
  readonly local: boolean;
  readonly options: Docker.DockerOptions;
}

/** Reads what DOCKER_HOST may hold: unix://, tcp://, http://, https:// or ssh://. */
export function toEngineAddress(host: string | undefined, certPath: string | undefined): EngineAddress {
  if (host === undefined || host === "" || host === "unix://") return unixAddress(defaultSocket());
  if (host.startsWith("unix://")) return unixAddress(host.slice("unix://".length));
  if (host.startsWith("/")) return unixAddress(host);
  const url = parse(host);
  const tls = url.protocol === "https:" || url.port === "2376" || certPath !== undefined;
  const port = url.port === "" ? (url.protocol === "ssh:" ? 22 : tls ? 2376 : 2375) : Number(url.port);
  const options: Docker.DockerOptions = {
    host: url.hostname,
    port,
    protocol: url.protocol === "ssh:" ? "ssh" : tls ? "https" : "http",
    ...(url.username === "" ? {} : { username: url.username }),
    ...(certPath === undefined ? {} : certificates(certPath)),
  };
  return { text: host, local: false, options };
}

/** The host is named as undefined because the library would otherwise take DOCKER_HOST's over the socket. */
function unixAddress(path: string): EngineAddress {
  const options = { host: undefined, port: undefined, protocol: "http", socketPath: path };
  return { text: `unix://${path}`, local: true, options: options as unknown as Docker.DockerOptions };
}

function defaultSocket(): string {
  if (existsSync(SYSTEM_SOCKET)) return SYSTEM_SOCKET;
  const desktop = join(homedir(), ".docker", "run", "docker.sock");
  return existsSync(desktop) ? desktop : SYSTEM_SOCKET;
}

function parse(host: string): URL {
  try {
    const url = new URL(host.includes("://") ? host : `tcp://${host}`);
    if (["tcp:", "http:", "https:", "ssh:"].includes(url.protocol) && url.hostname !== "") return url;
  } catch {
    // Told below, with what would have been right.
  }
  throw new AidoError("INVALID_CONFIG", `${host} is not the address of a Docker engine`, {
    hint: "Use unix:///var/run/docker.sock, tcp://host:2376 or ssh://user@host in DOCKER_HOST.",
  });
}

function certificates(directory: string): { ca: Buffer; cert: Buffer; key: Buffer } {
  const read = (name: string) => readFileSync(join(directory, name));
  return { ca: read("ca.pem"), cert: read("cert.pem"), key: read("key.pem") };
}
