import type { FileEvent } from "@aido/sdk/protocol";
import { FieldReader } from "../supervisor/frame-fields.ts";
import { protocolError } from "../supervisor/frames.ts";

const READY = 0;
const TYPES: Readonly<Record<number, FileEvent["type"]>> = {
  1: "created",
  2: "modified",
  3: "removed",
  4: "overflow",
};
const MAX_TEXT_BYTES = 1_048_576;

/** Events of the `watch` tool. `onReady` is called when nothing that happens from then on is missed. */
export async function* readFileEvents(
  stdout: AsyncIterable<Uint8Array>,
  onReady?: () => void,
): AsyncGenerator<FileEvent, void, undefined> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of stdout) {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 5) {
      const length = rest.readUInt32LE(1);
      if (length > MAX_TEXT_BYTES) throw protocolError("a file's name is too long");
      if (rest.length < 5 + length) break;
      const fields = new FieldReader(rest.subarray(0, 5 + length));
      rest = rest.subarray(5 + length);
      const kind = fields.u8();
      const path = fields.str();
      if (kind === READY) {
        onReady?.();
        continue;
      }
      const type = TYPES[kind];
      if (type === undefined) throw protocolError(`a file event of kind ${kind}`);
      yield { type, path };
    }
  }
}
