import type { Duplex } from "node:stream";
import type { Engine } from "./engine.ts";
import { ExecStream } from "./exec-stream.ts";
import { AGENT_TARGET, SOCKET_TARGET } from "./to-container-options.ts";

/** Reaches the supervisor through an engine exec that copies between its standard streams and the socket. */
export async function connectExec(
  engine: Engine,
  place: { sandboxId: string; containerId: string },
  signal?: AbortSignal,
): Promise<Duplex> {
  const action = { doing: "connecting to the sandbox", sandboxId: place.sandboxId };
  const exec = await engine.call(
    action,
    (abortSignal) =>
      engine.docker.getContainer(place.containerId).exec({
        Cmd: [AGENT_TARGET, "connect", "--socket", SOCKET_TARGET],
        User: "0:0",
        WorkingDir: "/",
        AttachStdin: true,
        AttachStdout: true,
        AttachStderr: true,
        Tty: false,
        abortSignal,
      }),
    { signal },
  );
  const raw = await engine.call(
    action,
    (abortSignal) => exec.start({ hijack: true, stdin: true, abortSignal }),
    { signal },
  );
  return new ExecStream(raw);
}
