import type { ContextEntry, ContextStream, ImageBuild } from "../../core/driver/driver-images.ts";
import { header, padded, paxRecord, tarEnd, tarMember } from "../../core/history/tar-writer.ts";

const AT = new Date(0);
const BLOCK = 512;

/** What the engine is sent: a tar of the Dockerfile and the files. Times are left out, so that equal files are equal to its cache. */
export async function* buildContext(build: ImageBuild): AsyncGenerator<Buffer> {
  yield* tarMember(build.dockerfilePath ?? "Dockerfile", "100644", Buffer.from(build.dockerfile), AT);
  for await (const entry of build.files) yield* toMember(entry);
  yield tarEnd();
}

async function* toMember(entry: ContextEntry): AsyncGenerator<Buffer> {
  const path = Buffer.from(entry.path).toString("latin1");
  if ("target" in entry) yield* tarMember(path, "120000", Buffer.from(entry.target), AT);
  else if ("content" in entry)
    yield* tarMember(path, entry.executable ? "100755" : "100644", Buffer.from(entry.content), AT);
  else yield* streamed(path, entry);
}

async function* streamed(path: string, { bytes, read, executable }: ContextStream): AsyncGenerator<Buffer> {
  // The plain header counts to 8 GiB.
  const pax = Buffer.concat([paxRecord("path", path), paxRecord("size", String(bytes))]);
  yield header({ name: "pax", type: "x", size: pax.length, mode: 0o644, at: AT });
  yield padded(pax);
  yield header({
    name: "file",
    type: "0",
    size: Math.min(bytes, 0o77777777777),
    mode: executable ? 0o755 : 0o644,
    at: AT,
  });
  let sent = 0;
  for await (const chunk of read()) {
    sent += chunk.byteLength;
    if (sent > bytes) break;
    yield Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  }
  if (sent !== bytes) throw new Error(`a file of the build changed while it was sent`);
  yield Buffer.alloc((BLOCK - (bytes % BLOCK)) % BLOCK);
}
