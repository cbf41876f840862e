// The Messages API as far as a coding agent needs it, with answers that are made up. Runs inside sandboxes.
import { realpathSync } from "node:fs";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";

const textOf = (content) =>
  typeof content === "string" ? content : content.map((part) => part.text ?? part.type).join("\n");

function answerTo(messages, model) {
  const users = messages.filter(({ role }) => role === "user");
  const last = users.at(-1)?.content;
  const isResult = Array.isArray(last) && last.some(({ type }) => type === "tool_result");
  const asked = textOf(last ?? "");
  if (isResult) return [{ type: "text", text: "The file is written." }];
  if (asked.includes("which model?")) return [{ type: "text", text: model }];
  if (asked.includes("write the file")) {
    const input = { command: "echo by claude > claude.txt", description: "Write the file" };
    return [{ type: "tool_use", id: `toolu_${messages.length}`, name: "Bash", input }];
  }
  const before = users.map(({ content }) => textOf(content)).join("\n");
  return [{ type: "text", text: before.includes("the word is heron") ? "heron" : "I do not know." }];
}

/** A server that answers what `answerTo` makes of the conversation and the model's name; it may take its time. */
export const messagesApi = (answerTo) =>
  createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => (body += chunk));
    request.on("end", async () => {
      if (!request.url.startsWith("/v1/messages")) return response.writeHead(404).end("{}");
      const { model, messages, stream } = JSON.parse(body);
      const content = await answerTo(messages, model);
      const stop_reason = content[0].type === "tool_use" ? "tool_use" : "end_turn";
      const usage = { input_tokens: 100, output_tokens: 10 };
      const message = { id: `msg_${Date.now()}`, type: "message", role: "assistant", model };
      if (stream !== true) {
        response.writeHead(200, { "content-type": "application/json" });
        return response.end(JSON.stringify({ ...message, content, stop_reason, usage }));
      }
      response.writeHead(200, { "content-type": "text/event-stream" });
      const send = (type, data) =>
        response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
      send("message_start", {
        message: {
          ...message,
          content: [],
          stop_reason: null,
          usage: { input_tokens: 100, output_tokens: 1 },
        },
      });
      content.forEach((part, index) => {
        const isText = part.type === "text";
        const content_block = isText ? { type: "text", text: "" } : { ...part, input: {} };
        const delta = isText
          ? { type: "text_delta", text: part.text }
          : { type: "input_json_delta", partial_json: JSON.stringify(part.input) };
        send("content_block_start", { index, content_block });
        send("content_block_delta", { index, delta });
        send("content_block_stop", { index });
      });
      send("message_delta", { delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 10 } });
      send("message_stop", {});
      response.end();
    });
  });

if (realpathSync(process.argv[1]) === fileURLToPath(import.meta.url))
  messagesApi(answerTo).listen(Number(process.argv[2]), "127.0.0.1", () => console.log("listening"));
