import type { Aido } from "@aido/sdk";
import { AidoError, type ExecInfo, type ExecRequest } from "@aido/sdk/protocol";
import type { CliContext } from "../context.ts";
import { pumpOutput } from "../output/pump-output.ts";
import { execExitCode } from "./exit-code.ts";
import { explainEnd } from "./explain-end.ts";
import { feedStdin } from "./feed-stdin.ts";

export interface TerminalTarget {
  sandbox: string;
  request: ExecRequest;
}

/** Runs a command on a terminal of its own and joins it to this one. The terminal is put back whatever happens. */
export async function terminal(context: CliContext, aido: Aido, target: TerminalTarget): Promise<number> {
  if (context.globals.json) {
    throw new AidoError("VALIDATION_ERROR", "--json and a terminal exclude each other", {
      hint: "Leave --tty away: `aido exec --json` prints the output as JSON lines.",
    });
  }
  const { stdin } = context;
  if (target.request.stdin && !stdin.isTerminal) {
    throw new AidoError("VALIDATION_ERROR", "Standard input is not a terminal", {
      hint: "Leave --tty away: `aido exec -i` passes a pipe or a file on as it is.",
    });
  }
  const started = await aido.execs.start(target.sandbox, {
    ...target.request,
    pty: context.signals.terminalSize(),
    env: { ...terminalEnv(context.env), ...target.request.env },
  });
  const info = await join(context, aido, started, target.request.stdin ?? false);
  await explainEnd(context, info);
  return execExitCode(info);
}

async function join(context: CliContext, aido: Aido, started: ExecInfo, typing: boolean): Promise<ExecInfo> {
  const { sandboxId, id } = started;
  const ended = new AbortController();
  const kill = (signal: string) => aido.execs.kill(sandboxId, id, { signal }).catch(() => undefined);
  const stops = [
    context.signals.on("SIGWINCH", () => {
      // A resize that comes when the command has just ended is of no interest.
      void aido.execs.resize(sandboxId, id, context.signals.terminalSize()).catch(() => undefined);
    }),
    // In raw mode Ctrl-C is a byte like any other; these come from outside.
    context.signals.on("SIGTERM", () => void kill("SIGTERM")),
    context.signals.on("SIGHUP", () => void kill("SIGHUP")),
    context.signals.on("SIGINT", () => void kill("SIGINT")),
  ];
  if (typing) context.stdin.setRawMode(true);
  try {
    const feeding = typing ? feedStdin(aido.execs, started, context.stdin, ended.signal) : undefined;
    const output = pumpOutput(context, aido.execs.output(sandboxId, id, { follow: true }), {
      onClosed: () => void kill("SIGHUP"),
    });
    output.catch(() => undefined);
    await (feeding === undefined ? output : Promise.race([output, feeding.then(() => output)]));
    return await aido.execs.wait(sandboxId, id);
  } finally {
    if (typing) context.stdin.setRawMode(false);
    ended.abort();
    if (typing) context.stdin.stop();
    for (const stop of stops) stop();
  }
}

/** What programs need to know of the terminal they draw on; nothing else of the host's environment is passed. */
function terminalEnv(env: CliContext["env"]): Record<string, string> {
  const term = env["TERM"];
  const known = term !== undefined && /^[A-Za-z0-9+._-]{1,64}$/.test(term);
  return {
    TERM: known ? term : "xterm-256color",
    ...(env["COLORTERM"] === "truecolor" ? { COLORTERM: "truecolor" } : {}),
  };
}
