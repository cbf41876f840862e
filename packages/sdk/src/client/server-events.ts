import { readChunk } from "./read-chunk.ts";

export interface ReceivedEvent {
  event: string;
  data: unknown;
}

const MAX_EVENT_CHARS = 8 * 1024 * 1024;
/** The server says something every 15 seconds; one that is silent for longer is gone without a word. */
const SILENCE_MS = 60_000;

/** Server-sent events of a reply, one by one. */
export async function* serverEvents(
  response: Response,
  server: string,
  signal?: AbortSignal,
): AsyncGenerator<ReceivedEvent> {
  if (response.body === null) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (;;) {
      const { done, value } = await readChunk(reader, { server, signal, silenceMs: SILENCE_MS });
      if (done) return;
      text += decoder.decode(value, { stream: true });
      if (text.length > MAX_EVENT_CHARS) throw new Error("an event of the server is too long");
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        const event = parse(text.slice(0, end));
        text = text.slice(end + 2);
        if (event !== undefined) yield event;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function parse(block: string): ReceivedEvent | undefined {
  let event = "message";
  const data: string[] = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) event = line.slice(7);
    else if (line.startsWith("data: ")) data.push(line.slice(6));
  }
  return data.length === 0 ? undefined : { event, data: JSON.parse(data.join("\n")) };
}
