import { AidoError } from "@aido/sdk/protocol";
import { ByteSource } from "./byte-source.ts";
import { brokenScan, type ScanRecord } from "./scan-records.ts";
import type { WorkspaceReader } from "./workspace-scanner.ts";

const HEADER_BYTES = 9;

export interface ReadContent {
  record: ScanRecord;
  /** Undefined for what is gone, unreadable, no longer a file or too large to hold. */
  content: Buffer | undefined;
  size: number;
}

/** Contents of many files in one exec. */
export async function* readContents(
  reader: WorkspaceReader,
  records: readonly ScanRecord[],
  maxFileBytes: number,
  signal?: AbortSignal,
): AsyncGenerator<ReadContent> {
  if (records.length === 0) return;
  const stdin = Buffer.from(records.map((record) => `${record.path}\0`).join(""), "latin1");
  const ended = () => new AidoError("GIT_COMMIT_FAILED", "The sandbox ended while its files were read");
  const source = new ByteSource(reader.tool(["cat"], { stdin, signal }), ended);
  try {
    for (const record of records) {
      const header = await source.take(HEADER_BYTES);
      const status = header.readUInt8(0);
      const size = Number(header.readBigUInt64LE(1));
      if (status > 4 || !Number.isSafeInteger(size)) throw brokenScan();
      if (size > maxFileBytes) {
        // It has grown since the scan: what is too large to hold is read past, not kept.
        await source.skip(size);
        yield { record, content: undefined, size };
      } else {
        const content = await source.take(size);
        yield { record, content: status === 0 || status === 4 ? content : undefined, size };
      }
    }
  } finally {
    await source.close();
  }
}
