export interface ReadEvent {
  event: string;
  id: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: an event's data is whatever the test expects it to be
  data: any;
}

/** Server-sent events of a reply, until it ends or `isLast` says so. */
export async function readEvents(
  response: Response,
  isLast: (event: ReadEvent) => boolean = () => false,
): Promise<ReadEvent[]> {
  const events: ReadEvent[] = [];
  for await (const event of eventsOf(response)) {
    events.push(event);
    if (isLast(event)) break;
  }
  return events;
}

export async function* eventsOf(response: Response): AsyncGenerator<ReadEvent> {
  if (response.body === null) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
      const parts = text.split("\n\n");
      text = parts.pop() ?? "";
      for (const part of parts) {
        const event = parse(part);
        if (event !== undefined) yield event;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** Undefined for comments, which keep the connection alive. */
function parse(part: string): ReadEvent | undefined {
  const field = (name: string) =>
    part
      .split("\n")
      .find((line) => line.startsWith(`${name}: `))
      ?.slice(name.length + 2);
  const data = field("data");
  if (data === undefined) return undefined;
  return { event: field("event") ?? "message", id: field("id"), data: JSON.parse(data) };
}
