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
  for await (const chunk of (request.body ?? []) as AsyncIterable<Uint8Array>) {
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
