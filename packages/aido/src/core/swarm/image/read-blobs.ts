import type { Git } from "../merge/git.ts";

const BATCH_BYTES = 16 * 1024 * 1024;
const BATCH_FILES = 500;
const HEADER_BYTES = 100;

interface Blob {
  readonly id: string;
  readonly bytes: number;
}

/** Each with its content, in order. Some megabytes are asked for at a time, so that neither memory nor processes grow with the project. */
export async function* readBlobs<File extends Blob>(
  git: Git,
  files: Iterable<File>,
): AsyncGenerator<{ file: File; content: Buffer }> {
  for (const batch of batches(files)) {
    const bytes = batch.reduce((sum, file) => sum + file.bytes + HEADER_BYTES, 0);
    const { stdout } = await git.run(["cat-file", "--batch"], {
      code: "VALIDATION_ERROR",
      stdin: batch.map(({ id }) => `${id}\n`).join(""),
      maxBytes: bytes,
    });
    let at = 0;
    for (const file of batch) {
      const end = stdout.indexOf(0x0a, at);
      const header = stdout.toString("latin1", at, end);
      if (end < 0 || header !== `${file.id} blob ${file.bytes}`) throw new Error(`git says ${header}`);
      at = end + 1 + file.bytes + 1;
      yield { file, content: stdout.subarray(end + 1, at - 1) };
    }
  }
}

function* batches<File extends Blob>(files: Iterable<File>): Generator<File[]> {
  let batch: File[] = [];
  let bytes = 0;
  for (const file of files) {
    if (batch.length > 0 && (batch.length >= BATCH_FILES || bytes + file.bytes > BATCH_BYTES)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(file);
    bytes += file.bytes;
  }
  if (batch.length > 0) yield batch;
}
