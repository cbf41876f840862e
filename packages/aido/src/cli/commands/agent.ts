import { type AgentEvent, type AgentRequest, type AgentResult, AidoError } from "@aido/sdk/protocol";
import type { CliContext } from "../context.ts";
import { parseDuration } from "../options/duration.ts";
import { parseNumber } from "../options/numbers.ts";
import { note, printJsonLine, printResult } from "../output/print.ts";
import { printable, printableLines } from "../output/printable.ts";
import { table } from "../output/table.ts";
import { EXIT } from "./exit-code.ts";
import { interruptible } from "./interrupt.ts";

export interface RunAgentOptions {
  agent?: string;
  session?: string;
  model?: string;
  maxTurns?: string;
  context?: string;
  timeout?: string;
}

export async function runAgent(
  context: CliContext,
  sandbox: string,
  words: readonly string[],
  options: RunAgentOptions,
): Promise<number> {
  const request = toRequest(options, words.length > 0 ? words.join(" ") : await readMessage(context));
  return interruptible(context, async (signal) => {
    const aido = await context.open();
    const printer = new EventPrinter(context);
    const result = await aido.agents.run(sandbox, request, {
      signal,
      onEvent: (event) => printer.show(event),
    });
    await printer.end(result, sandbox);
    if (result.success) return 0;
    return result.errorCode === "COMMAND_TIMEOUT" ? EXIT.timedOut : 1;
  });
}

export async function cancelAgent(
  context: CliContext,
  sandbox: string,
  session: string | undefined,
): Promise<number> {
  const aido = await context.open();
  const cancelled = await aido.agents.cancel(sandbox, session);
  await printResult(context, { cancelled }, () =>
    cancelled === 0 ? "Nothing was under way\n" : `Ended ${cancelled} run${cancelled === 1 ? "" : "s"}\n`,
  );
  return 0;
}

export async function listAgents(context: CliContext): Promise<number> {
  const aido = await context.open();
  const agents = await aido.agents.list();
  await printResult(context, agents, () =>
    context.globals.quiet
      ? agents.map(({ identifier }) => `${identifier}\n`).join("")
      : table(
          agents,
          [
            { title: "AGENT", value: ({ identifier, isDefault }) => identifier + (isDefault ? " *" : "") },
            { title: "KIND", value: ({ kind }) => kind },
            { title: "NAME", value: ({ displayName }) => displayName },
            { title: "DESCRIPTION", value: ({ description }) => description, flexible: true },
          ],
          context.stdout.columns,
        ),
  );
  return 0;
}

/** What comes from the sandbox reaches the terminal without anything that could act on it. */
class EventPrinter {
  readonly #context: CliContext;
  #part: string | undefined;
  #isLineOpen = false;

  constructor(context: CliContext) {
    this.#context = context;
  }

  async show(event: AgentEvent): Promise<void> {
    if (this.#context.globals.json) return printJsonLine(this.#context, event);
    if (event.type === "text") {
      if (event.id !== this.#part) await this.#closeLine();
      this.#part = event.id;
      await this.#write(event.text);
    }
    if (event.type === "toolCall" && event.status === "running") {
      await this.#closeLine();
      await note(this.#context, `aido: ${printable(event.name)}`);
    }
  }

  async end(result: AgentResult, sandbox: string): Promise<void> {
    if (this.#context.globals.json) return;
    if (this.#part === undefined) await this.#write(result.response);
    await this.#closeLine();
    if (result.error !== undefined) {
      await this.#context.stderr.write(`aido: ${printableLines(result.error)}\n`);
    }
    const { inputTokens, outputTokens } = result.usage;
    await note(
      this.#context,
      `aido: ${(result.durationMs / 1000).toFixed(1)} s, ${inputTokens} tokens in, ${outputTokens} out. Go on with: aido agent run ${printable(sandbox)} --session ${printable(result.sessionId)} -- …`,
    );
  }

  async #write(text: string): Promise<void> {
    if (text === "") return;
    await this.#context.stdout.write(printableLines(text));
    this.#isLineOpen = !text.endsWith("\n");
  }

  async #closeLine(): Promise<void> {
    if (this.#isLineOpen) await this.#context.stdout.write("\n");
    this.#isLineOpen = false;
  }
}

function toRequest(options: RunAgentOptions, message: string): AgentRequest {
  return {
    message,
    identifier: options.agent,
    sessionId: options.session,
    model: options.model,
    maxTurns:
      options.maxTurns === undefined
        ? undefined
        : parseNumber(options.maxTurns, "--max-turns", { least: 0, most: 10_000, whole: true }),
    context: options.context === undefined ? undefined : parseContext(options.context),
    timeoutMs: options.timeout === undefined ? undefined : parseDuration(options.timeout, "--timeout"),
  };
}

function parseContext(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      return value as Record<string, unknown>;
    }
  } catch {
    // Told below, as anything else that is no object.
  }
  throw new AidoError("VALIDATION_ERROR", "--context is no JSON object", {
    hint: `Write it as --context '{"branch":"main"}'.`,
  });
}

async function readMessage(context: CliContext): Promise<string> {
  if (context.stdin.isTerminal) {
    throw new AidoError("VALIDATION_ERROR", "There is no message for the agent", {
      hint: 'Write it after `--`: aido agent run web -- "make the tests pass"',
    });
  }
  const chunks: Uint8Array[] = [];
  for await (const chunk of context.stdin.chunks()) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}
