import type { AgentMessage, ModelClient, ModelReply } from "../../src/agent-layer/index.ts";

/** A model that says what it is told to, one reply after the other, and remembers what it was shown. */
export class ScriptedModel implements ModelClient {
  readonly seen: (readonly AgentMessage[])[] = [];
  readonly #replies: (Partial<ModelReply> | ((messages: readonly AgentMessage[]) => Partial<ModelReply>))[];

  constructor(
    replies: (Partial<ModelReply> | ((messages: readonly AgentMessage[]) => Partial<ModelReply>))[],
  ) {
    this.#replies = [...replies];
  }

  async reply(messages: readonly AgentMessage[]): Promise<ModelReply> {
    this.seen.push(messages);
    const next = this.#replies.shift();
    const reply = typeof next === "function" ? next(messages) : next;
    return { text: "", toolCalls: [], ...reply };
  }
}

let calls = 0;
export function call(name: string, args: Record<string, unknown>) {
  calls += 1;
  return { toolCalls: [{ id: `call-${calls}`, name, arguments: args }] };
}
