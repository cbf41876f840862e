import { StringDecoder } from "node:string_decoder";

const MAX_LINE_CHARACTERS = 1_048_576;

/** Lines of an engine's answer. Unlike readline's, this ends when the stream is destroyed. */
export async function* readLines(stream: NodeJS.ReadableStream): AsyncGenerator<string> {
  const decoder = new StringDecoder("utf8");
  let rest = "";
  for await (const chunk of stream) {
    rest += typeof chunk === "string" ? chunk : decoder.write(chunk);
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > MAX_LINE_CHARACTERS) throw new Error("the engine sent a line without end");
    yield* lines.filter((line) => line.trim() !== "");
  }
  if (rest.trim() !== "") yield rest;
}
