import { closed, listen } from "../../../src/swarm-adapter/testing/git-server.ts";
import { type Message, messagesApi, type Part } from "../../agents/scripted-messages-api.mjs";

/** What a worker's agent wants to know: of which story, and how many of its tools have answered so far. */
export interface Asked {
  readonly branch: string;
  readonly story: string;
  readonly step: number;
}

export type Step = { readonly text: string } | { readonly tool: string; readonly input: object };
export type Script = (asked: Asked) => Step | Promise<Step>;

export interface ScriptedModel extends AsyncDisposable {
  readonly url: string;
  readonly asked: readonly Asked[];
  /** With which agents came. */
  readonly keys: ReadonlySet<string>;
}

/** The Messages API for the agents of a swarm: a script says what the model does next for each story. */
export async function startModel(address: string, script: Script): Promise<ScriptedModel> {
  const asked: Asked[] = [];
  const keys = new Set<string>();
  const server = messagesApi(async (messages) => {
    const next = toAsked(messages);
    // Agents also ask for titles and the like.
    if (next === undefined) return [{ type: "text", text: "A swarm" }];
    asked.push(next);
    return [toPart(await script(next), next)];
  });
  server.on("request", ({ headers }) => keys.add(String(headers["x-api-key"])));
  const port = await listen(server, address);
  return { url: `http://${address}:${port}`, asked, keys, [Symbol.asyncDispose]: () => closed(server) };
}

function toAsked(messages: readonly Message[]): Asked | undefined {
  const parts = messages.flatMap(({ content }) =>
    typeof content === "string" ? [{ type: "text", text: content }] : content,
  );
  const prompt = parts.map(({ text = "" }) => text).find((text) => text.includes("Do this one story"));
  const branch = /on the branch (\S+)\. Do this/.exec(prompt ?? "")?.[1];
  const story = /^(US-\d{3}): /m.exec(prompt ?? "")?.[1];
  if (branch === undefined || story === undefined) return undefined;
  return { branch, story, step: parts.filter(({ type }) => type === "tool_result").length };
}

function toPart(step: Step, { story, step: index }: Asked): Part {
  if ("text" in step) return { type: "text", text: step.text };
  return { type: "tool_use", id: `toolu_${story.slice(3)}${index}`, name: step.tool, input: step.input };
}

/** Lets a script wait until the test wants it to go on, and the test until the script is there. */
export class Gate {
  readonly reached: Promise<void>;
  #reach = () => {};
  #open = () => {};
  readonly opened: Promise<void>;

  constructor() {
    this.reached = new Promise((resolve) => {
      this.#reach = resolve;
    });
    this.opened = new Promise((resolve) => {
      this.#open = resolve;
    });
  }

  async pass(): Promise<void> {
    this.#reach();
    await this.opened;
  }

  open(): void {
    this.#open();
  }
}

/** Each story writes a file of its name; one of them waits at the gate. */
export function writing(isHeld: (asked: Asked) => boolean, gate: Gate) {
  return async (asked: Asked): Promise<Step> => {
    const { story, step } = asked;
    if (step === 0)
      return { tool: "Bash", input: { command: `echo ${story} >> ${story}.txt`, description: "Write" } };
    if (isHeld(asked)) await gate.pass();
    return { text: `${story} is done.` };
  };
}
