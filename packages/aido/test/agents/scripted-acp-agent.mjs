// A small agent that speaks the Agent Client Protocol, honest or not, as the message asks. Runs inside sandboxes.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

const waiting = new Map();
let ids = 0;
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const ask = (method, params) =>
  new Promise((resolve) => {
    ids += 1;
    waiting.set(ids, resolve);
    send({ id: ids, method, params });
  });
const update = (sessionId, update) => send({ method: "session/update", params: { sessionId, update } });
const say = (sessionId, text) =>
  update(sessionId, { sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
const has = (flag) => process.argv.includes(flag);
let model = process.argv.find((word) => word.startsWith("--model="))?.slice("--model=".length) ?? "my own";
const choices = () => {
  const options = ["small", "large"].map((value) => ({ value, name: value }));
  const about = { id: "which-model", category: "model", type: "select", name: "Model" };
  return has("--models") ? { configOptions: [{ ...about, currentValue: model, options }] } : {};
};
let takenUp = "new";
let cancelled = () => undefined;
const untilCancelled = new Promise((resolve) => {
  cancelled = resolve;
});

async function prompt({ sessionId, prompt: blocks, _meta }) {
  const text = blocks.at(-1).text;
  const memory = `memory-${sessionId}`;
  const before = existsSync(memory) ? readFileSync(memory, "utf8") : "";
  writeFileSync(memory, `${before}${text};`);
  if (text === "model") say(sessionId, `${model}, ${takenUp}`);
  else if (text === "recall") say(sessionId, `I remember: ${before}`);
  else if (/^permission$/m.test(text)) {
    say(sessionId, "Let me see. ");
    const toolCall = { toolCallId: "t1", title: "write a file", status: "pending", rawInput: { path: "x" } };
    update(sessionId, { sessionUpdate: "tool_call", ...toolCall });
    const options = [
      { optionId: "yes", name: "Yes", kind: "allow_once" },
      { optionId: "no", name: "No", kind: "reject_once" },
    ];
    const { result } = await ask("session/request_permission", { sessionId, toolCall, options });
    const isAllowed = result.outcome.optionId === "yes";
    if (isAllowed) writeFileSync("allowed.txt", "written by the agent\n");
    const status = isAllowed ? "completed" : "failed";
    update(sessionId, { sessionUpdate: "tool_call_update", toolCallId: "t1", status });
    say(sessionId, isAllowed ? "Done." : "I was not allowed to.");
  } else if (text === "host paths") {
    const read = await ask("fs/read_text_file", { sessionId, path: "/etc/shadow" });
    const run = await ask("terminal/create", { sessionId, command: "id" });
    say(sessionId, `${read.error?.code} ${run.error?.code}`);
  } else if (text === "hang") {
    say(sessionId, "thinking");
    await untilCancelled;
    writeFileSync("cancelled.txt", "told in time\n");
    return { stopReason: "cancelled" };
  } else if (text === "never") await new Promise(() => undefined);
  else if (text === "nonsense") {
    process.stdout.write(`{"jsonrpc":\nplain text\n[1]\n${"x".repeat(5_000_000)}\n`);
    send({ method: "session/update", params: { sessionId: 7, update: null } });
    send({ id: 999, result: "to nothing" });
    send({ id: "\u001b]0;x\u0007", result: "to nothing" });
    send({ method: "\u001b[2J" });
    say("another session", "not for you");
    say(sessionId, "still here");
  } else if (text === "endless") {
    for (;;) {
      say(sessionId, "y".repeat(60_000));
      await new Promise((resolve) => process.stdout.write("\n", resolve));
    }
  } else if (text === "busy") {
    for (;;) {
      say(sessionId, "Once more. ");
      update(sessionId, { sessionUpdate: "tool_call", toolCallId: "t", title: "look" });
      update(sessionId, { sessionUpdate: "tool_call_update", toolCallId: "t", status: "completed" });
      await new Promise((resolve) => process.stdout.write("\n", resolve));
    }
  } else if (text === "die") {
    process.stderr.write("out of ideas\n");
    process.exit(9);
  } else if (text === "turns") return { stopReason: "max_turn_requests" };
  else {
    const context = blocks.length > 1 ? ` (${blocks[0].text})` : "";
    say(sessionId, `You said ${text}`);
    say(sessionId, `${context}${_meta === undefined ? "" : ` ${JSON.stringify(_meta)}`}`);
  }
  return { stopReason: "end_turn", usage: { inputTokens: 12, outputTokens: 5, totalTokens: 17 } };
}

const METHODS = {
  initialize: () => ({
    protocolVersion: 1,
    agentCapabilities: {
      loadSession: !has("--forgetful"),
      ...(has("--resumes") ? { sessionCapabilities: { resume: {} } } : {}),
    },
    authMethods: [],
  }),
  "session/new": () => ({ sessionId: `acp-${process.pid}-${Date.now()}`, ...choices() }),
  "session/resume": () => {
    takenUp = "resumed";
    return choices();
  },
  "session/set_config_option": ({ configId, value }) => {
    if (configId !== "which-model" || !["small", "large"].includes(value)) return undefined;
    model = value;
    return choices();
  },
  "session/load": ({ sessionId }) => {
    takenUp = "loaded";
    say(sessionId, "all that was said before, once more");
    return choices();
  },
  "session/prompt": prompt,
};

createInterface({ input: process.stdin }).on("line", async (line) => {
  const { id, method, params, ...answer } = JSON.parse(line);
  if (method === undefined) return waiting.get(id)?.(answer);
  if (method === "session/cancel") return cancelled();
  const result = await METHODS[method]?.(params);
  if (id === undefined) return;
  if (result === undefined) send({ id, error: { code: -32601, message: `there is no ${method}` } });
  else send({ id, result });
});
