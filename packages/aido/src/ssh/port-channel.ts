import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ServerChannel, TcpipRequestInfo } from "ssh2";

/** The sandbox itself; other addresses are not reached through it. */
const ITSELF = new Set(["localhost", "127.0.0.1", "::1"]);

export interface PortChannel {
  dial(port: number): Promise<Duplex>;
  accept(): ServerChannel;
  reject(): void;
}

/** `ssh -L`: a connection to a port inside the sandbox. Resolves when it has ended. */
export async function forwardPort(info: TcpipRequestInfo, channel: PortChannel): Promise<void> {
  if (!ITSELF.has(info.destIP)) return channel.reject();
  let inside: Duplex;
  try {
    inside = await channel.dial(info.destPort);
  } catch {
    return channel.reject();
  }
  const outside = channel.accept();
  if (outside === undefined) {
    inside.destroy();
    return;
  }
  outside.once("close", () => inside.destroy());
  inside.once("close", () => outside.end());
  await Promise.allSettled([pipeline(outside, inside), pipeline(inside, outside)]);
}
