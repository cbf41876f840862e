import { AidoError } from "@aido/sdk/protocol";

/** Reads at most `limit` bytes, however long the client says or makes its body. */
export async function readJson(request: Request, limit: number): Promise<unknown> {
  const tooLarge = () =>
    new AidoError("PAYLOAD_TOO_LARGE", `The body is larger than ${limit} bytes`, {
      hint: "Send files with PUT …/files, which streams them.",
    });
  if (Number(request.headers.get("content-length") ?? 0) > limit) throw tooLarge();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of bodyChunks(request)) {
    length += chunk.length;
    if (length > limit) throw tooLarge();
    chunks.push(chunk);
  }
  if (length === 0) return {};
  try {
    return JSON.parse(Buffer.concat(chunks).toString("utf8"));
  } catch (cause) {
    throw new AidoError("VALIDATION_ERROR", "The body is not JSON", { cause });
  }
}

/** The body as it arrives; a client that goes away in the middle of it has cancelled its request. */
export async function* bodyChunks(request: Request): AsyncGenerator<Uint8Array> {
  if (request.body === null) return;
  const reader = request.body.getReader();
  try {
    for (;;) {
      const { done, value } = await next(reader);
      if (done) return;
      yield value;
    }
  } finally {
    reader.releaseLock();
  }
}

async function next(reader: ReadableStreamDefaultReader<Uint8Array>) {
  try {
    return await reader.read();
  } catch (cause) {
    throw new AidoError("CANCELLED", "The request's body ended before it was complete", { cause });
  }
}
