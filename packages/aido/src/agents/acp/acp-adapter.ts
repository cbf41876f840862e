import type { PromptResponse } from "@agentclientprotocol/sdk";
import { AidoError, isAidoError } from "@aido/sdk/protocol";
import {
  type AgentAdapter,
  type AgentOutcome,
  type AgentPlace,
  type AgentTurn,
  TURNS_USED_UP,
} from "../../core/agent/agent-adapter.ts";
import { argvOf } from "../../core/agent/fill-argv.ts";
import { orAborted } from "../../core/supervisor/time-limit.ts";
import { choosePermission } from "./choose-permission.ts";
import { messageStream } from "./message-stream.ts";
import { openSession } from "./open-session.ts";
import { UpdateReader } from "./update-reader.ts";

/** Between a cancel and the kill: the agent may write down what it remembers. */
const GRACE_MS = 3_000;
const LEAVE_MS = 2_000;

/** Why a prompt can end without being done. */
const UNDONE: Readonly<Record<string, string>> = {
  max_tokens: "The agent's model reached its limit of tokens",
  max_turn_requests: TURNS_USED_UP,
  refusal: "The agent refuses to go on",
  cancelled: "The agent was cancelled",
};

/** Any agent that speaks the Agent Client Protocol on its standard input and output. Files and commands are its own. */
export class AcpAdapter implements AgentAdapter {
  async run(turn: AgentTurn, place: AgentPlace): Promise<AgentOutcome> {
    const { client } = await import("@agentclientprotocol/sdk");
    const process = await place.start({ argv: argvOf(turn), graceMs: GRACE_MS });
    const reader = new UpdateReader(place);
    const { stream, broken } = messageStream(process, (params) => reader.take(params));
    const connection = client({ name: "aido" })
      .onRequest("session/request_permission", ({ params }) =>
        choosePermission(params.options, place.signal.aborted ? "cancel" : turn.agent.permissions),
      )
      .connect(stream);
    try {
      const sessionId = await openSession(connection.agent, turn, place);
      const cancel = () =>
        void connection.agent.notify("session/cancel", { sessionId }).catch(() => undefined);
      place.signal.addEventListener("abort", cancel, { once: true });
      reader.listen(sessionId);
      const answer = await connection.agent
        .request<PromptResponse>("session/prompt", { sessionId, prompt: promptOf(turn), ...metaOf(turn) })
        .finally(() => place.signal.removeEventListener("abort", cancel));
      await reader.usage(answer);
      const error = UNDONE[answer.stopReason];
      return { success: error === undefined, response: reader.response, error };
    } catch (thrown) {
      // What broke the connection says more than that it is broken.
      const cause = broken() ?? thrown;
      if (isAidoError(cause) || place.signal.aborted) throw cause;
      if (connection.signal.aborted) await process.succeeded();
      throw failed(cause);
    } finally {
      connection.close();
      await leave(process);
    }
  }
}

/** Its input ends, so it ends too; one that stays is ended with all it has started. */
async function leave(process: Awaited<ReturnType<AgentPlace["start"]>>): Promise<void> {
  await process.closeStdin().catch(() => undefined);
  const limit = AbortSignal.timeout(LEAVE_MS);
  await orAborted(process.ended(), limit).catch(() => process.kill().catch(() => undefined));
}

function promptOf({ message, context }: AgentTurn) {
  const told =
    context === undefined ? [] : [`What the caller says besides, as JSON: ${JSON.stringify(context)}`];
  return [...told, message].map((text) => ({ type: "text" as const, text }));
}

/** The protocol has no word for a number of turns; agents that know one find it here. */
function metaOf({ maxTurns }: AgentTurn) {
  return maxTurns === undefined ? {} : { _meta: { maxTurns } };
}

function failed(thrown: unknown): AidoError {
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new AidoError("AGENT_FAILED", `The agent answered with an error: ${message.slice(0, 1_000)}`, {
    hint: "It may need a key: give the sandbox or the agent's settings the variable it reads.",
    cause: thrown,
  });
}
