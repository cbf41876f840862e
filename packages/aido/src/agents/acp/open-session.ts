import type { ClientContext, NewSessionResponse } from "@agentclientprotocol/sdk";
import { AidoError } from "@aido/sdk/protocol";
import type { AgentPlace, AgentTurn } from "../../core/agent/agent-adapter.ts";
import { asObject } from "../../core/agent/bounded-lines.ts";
import { orAborted } from "../../core/supervisor/time-limit.ts";

/** An agent that does not greet within this does not speak the protocol. */
const GREETING_MS = 120_000;
const PROTOCOL_VERSION = 1;
const SESSION = /^[\x21-\x7e]{1,512}$/;

/** Greets the agent and begins its session, or takes it up again. */
export async function openSession(agent: ClientContext, turn: AgentTurn, place: AgentPlace): Promise<string> {
  const late = AbortSignal.timeout(GREETING_MS);
  const within = <T>(work: Promise<T>): Promise<T> =>
    orAborted(work, late).catch((thrown: unknown) => {
      if (!late.aborted) throw thrown;
      throw new AidoError("AGENT_FAILED", "The agent does not answer: is it one that speaks this protocol?");
    });
  const greeting = await within(
    agent.request("initialize", {
      protocolVersion: PROTOCOL_VERSION,
      clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
      clientInfo: { name: "aido", version: "1" },
    }),
  );
  if (greeting.protocolVersion !== PROTOCOL_VERSION) {
    const message = `The agent speaks version ${greeting.protocolVersion} of the protocol, aido ${PROTOCOL_VERSION}`;
    throw new AidoError("AGENT_FAILED", message);
  }
  const where = { cwd: place.workdir, mcpServers: [] };
  const { reference } = turn;
  if (reference === undefined) {
    const opened = await within(agent.request<NewSessionResponse>("session/new", where));
    if (!SESSION.test(opened.sessionId))
      throw new AidoError("AGENT_FAILED", "The agent's session has no name");
    await place.keepReference(opened.sessionId);
    await within(chooseModel(agent, turn, opened.sessionId, opened));
    return opened.sessionId;
  }
  const can = greeting.agentCapabilities;
  const again = { ...where, sessionId: reference };
  const isResumable = asObject(can?.sessionCapabilities)?.["resume"];
  let opened: unknown;
  if (isResumable !== undefined && isResumable !== null) {
    opened = await within(agent.request("session/resume", again));
  } else if (can?.loadSession === true) {
    opened = await within(agent.request("session/load", again));
  } else {
    throw new AidoError("AGENT_FAILED", "This agent cannot take up a session again", {
      hint: "Begin a new session for each message.",
    });
  }
  await within(chooseModel(agent, turn, reference, opened));
  return reference;
}

/** By the agent's own choices. One that has none, and no place for it in its command, cannot be given a model. */
async function chooseModel(
  agent: ClientContext,
  { model, agent: definition }: AgentTurn,
  sessionId: string,
  opened: unknown,
): Promise<void> {
  const inCommand = definition.argv.flat().some((word) => word.includes("{model}"));
  if (model === undefined || inCommand) return;
  const options = asObject(opened)?.["configOptions"];
  const option = (Array.isArray(options) ? options : [])
    .map(asObject)
    .find((one) => one?.["category"] === "model" || one?.["id"] === "model");
  if (typeof option?.["id"] !== "string") {
    throw new AidoError("AGENT_FAILED", "This agent lets nobody choose its model", {
      hint: "Leave the model away, or put {model} into the agent's argv.",
    });
  }
  await agent.request("session/set_config_option", { sessionId, configId: option["id"], value: model });
}
