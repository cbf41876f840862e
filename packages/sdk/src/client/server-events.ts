export interface ReceivedEvent {
  event: string;
  data: unknown;
}

const MAX_EVENT_CHARS = 8 * 1024 * 1024;

/** Server-sent events of a reply, one by one. */
export async function* serverEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ReceivedEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
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
