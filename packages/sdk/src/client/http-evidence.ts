import type { Evidence } from "../aido.ts";
import type { EvidenceEntry, EvidenceVerdict } from "../protocol/index.ts";
import { chunksOf } from "./bytes.ts";
import type { Transport } from "./transport.ts";

export class HttpEvidence implements Evidence {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async *read(sandboxId: string): AsyncGenerator<EvidenceEntry> {
    const response = await this.#transport.send(`/api/sandbox/${encodeURIComponent(sandboxId)}/evidence`, {
      repeatable: true,
    });
    const decoder = new TextDecoder();
    let text = "";
    for await (const chunk of chunksOf(response, this.#transport.url)) {
      text += decoder.decode(chunk, { stream: true });
      for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
        yield JSON.parse(text.slice(0, end)) as EvidenceEntry;
        text = text.slice(end + 1);
      }
    }
  }

  async verify(sandboxId?: string): Promise<readonly EvidenceVerdict[]> {
    const reply = await this.#transport.json<{ verdicts: EvidenceVerdict[] }>("/api/evidence/verify", {
      query: { sandbox: sandboxId },
      repeatable: true,
      slow: true,
    });
    return reply.verdicts;
  }
}
