import type { AnyMessage, Stream } from "@agentclientprotocol/sdk";
import type { AgentProcess } from "../../core/agent/agent-adapter.ts";
import { boundedLines, parseObject } from "../../core/agent/bounded-lines.ts";

const MAX_LINE_BYTES = 4 * 1024 * 1024;
const HARMLESS_ID = /^[\w-]{1,64}$/;
type Json = Readonly<Record<string, unknown>>;

/**
 * The messages of a process: one JSON object a line. Lines that are none are passed over, and so is what the library
 * would complain about on the terminal in the agent's own words. Updates are taken here, one after the other, so a
 * slow listener makes the agent wait.
 */
export function messageStream(
  process: AgentProcess,
  onUpdate: (params: unknown) => Promise<void>,
): { stream: Stream; broken: () => unknown } {
  const lines = boundedLines(process.stdout, MAX_LINE_BYTES)[Symbol.asyncIterator]();
  const asked = new Set<unknown>();
  let failure: unknown;
  const readable = new ReadableStream<AnyMessage>(
    {
      async pull(controller) {
        try {
          for (;;) {
            const { done, value } = await lines.next();
            if (done === true) return controller.close();
            const message = parseObject(value) ?? {};
            if (message["method"] === "session/update") await onUpdate(message["params"]);
            else if (isRequest(message) || asked.delete(message["id"])) {
              return controller.enqueue(message as unknown as AnyMessage);
            }
          }
        } catch (thrown) {
          failure = thrown;
          controller.error(thrown);
        }
      },
    },
    { highWaterMark: 0 },
  );
  const writable = new WritableStream<AnyMessage>({
    write: async (message) => {
      if ("method" in message && "id" in message) asked.add(message.id);
      await process.write(`${JSON.stringify(message)}\n`);
    },
  });
  return { stream: { readable, writable }, broken: () => failure };
}

function isRequest({ id, method }: Json): boolean {
  const isHarmless = typeof id === "number" || (typeof id === "string" && HARMLESS_ID.test(id));
  return isHarmless && typeof method === "string" && /^[\w$/]{1,64}$/.test(method);
}
