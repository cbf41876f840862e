import type { AgentAdapter, AgentOutcome, AgentPlace, AgentTurn } from "../../core/agent/agent-adapter.ts";
import { argvOf } from "../../core/agent/fill-argv.ts";

/** Any program: its arguments are made of a template, the message is its standard input, its output the answer. */
export class CommandAdapter implements AgentAdapter {
  async run(turn: AgentTurn, place: AgentPlace): Promise<AgentOutcome> {
    const process = await place.start({ argv: argvOf(turn) });
    place.countTurn();
    // Whether it reads its input is its own business.
    const feeding = process.write(turn.message).then(() => process.closeStdin());
    feeding.catch(() => undefined);
    const decoder = new TextDecoder();
    for await (const chunk of process.stdout) {
      const text = decoder.decode(chunk, { stream: true });
      if (text !== "") await place.emit({ type: "text", id: "stdout", text });
    }
    const rest = decoder.decode();
    if (rest !== "") await place.emit({ type: "text", id: "stdout", text: rest });
    await process.succeeded();
    await place.keepReference(turn.sessionId);
    return { success: true };
  }
}
