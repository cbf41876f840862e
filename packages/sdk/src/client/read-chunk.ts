import { lostServer } from "./lost-server.ts";

export interface ReadLimits {
  /** For the message when it is lost. */
  server: string;
  signal?: AbortSignal | undefined;
  /** How long the server may say nothing. */
  silenceMs?: number | undefined;
}

/** The next part of a reply's body; a connection that breaks or falls silent is a lost server. */
export async function readChunk(reader: ReadableStreamDefaultReader<Uint8Array>, limits: ReadLimits) {
  const { server, signal, silenceMs } = limits;
  signal?.throwIfAborted();
  let stop = (): void => undefined;
  const stopped = new Promise<never>((_, reject) => {
    const aborted = () => reject(signal?.reason as Error);
    signal?.addEventListener("abort", aborted, { once: true });
    const timer =
      silenceMs === undefined
        ? undefined
        : setTimeout(() => reject(new Error("the server is silent")), silenceMs);
    stop = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", aborted);
    };
  });
  try {
    return await Promise.race([reader.read(), stopped]);
  } catch (cause) {
    if (signal?.aborted === true) throw signal.reason;
    throw lostServer(server, cause);
  } finally {
    stop();
  }
}
