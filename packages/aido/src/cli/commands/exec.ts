import type { Aido } from "@aido/sdk";
import { AidoError, type ExecInfo, type ExecRequest } from "@aido/sdk/protocol";
import type { CliContext } from "../context.ts";
import { parseDuration } from "../options/duration.ts";
import { parsePairs } from "../options/pairs.ts";
import { note, printJsonLine, printResult } from "../output/print.ts";
import { pumpOutput } from "../output/pump-output.ts";
import { execExitCode } from "./exit-code.ts";
import { explainEnd } from "./explain-end.ts";
import { feedStdin } from "./feed-stdin.ts";
import { forwardSignals } from "./forward-signals.ts";

export interface ExecOptions {
  interactive?: boolean;
  tty?: boolean;
  env?: readonly string[];
  cwd?: string;
  user?: string;
  timeout?: string;
  detach?: boolean;
  autoResume?: boolean;
}

export async function exec(
  context: CliContext,
  sandbox: string,
  argv: readonly string[],
  options: ExecOptions,
): Promise<number> {
  const request = toRequest(context, argv, options);
  const aido = await context.open({ sandbox });
  if (options.tty) {
    const { terminal } = await import("./terminal.ts");
    return terminal(context, aido, { sandbox, request });
  }
  const started = await aido.execs.start(sandbox, request);
  if (options.detach) {
    await printResult(context, started, () => `${started.id}\n`);
    await note(context, `Read its output with: aido logs ${started.sandboxId} --exec ${started.id}`);
    return 0;
  }
  return follow(context, aido, started, options.interactive ?? false);
}

function toRequest(context: CliContext, argv: readonly string[], options: ExecOptions): ExecRequest {
  if (options.tty && options.detach) {
    throw new AidoError("VALIDATION_ERROR", "--tty and --detach exclude each other", {
      hint: "A command that nobody watches needs no terminal: leave --tty away.",
    });
  }
  if (options.detach && options.interactive) {
    throw new AidoError("VALIDATION_ERROR", "--interactive and --detach exclude each other", {
      hint: "Write the input to a file with `aido cp` and let the command read it.",
    });
  }
  return {
    argv,
    env: parsePairs(options.env ?? [], "--env", (name) => context.env[name]),
    cwd: options.cwd,
    user: options.user,
    stdin: options.interactive ?? false,
    autoResume: options.autoResume,
    timeoutMs: options.timeout === undefined ? undefined : parseDuration(options.timeout, "--timeout"),
  };
}

async function follow(
  context: CliContext,
  aido: Aido,
  started: ExecInfo,
  interactive: boolean,
): Promise<number> {
  const { sandboxId, id } = started;
  const ended = new AbortController();
  // A command that has just ended cannot be signalled; its end is on the way.
  const kill = (signal: string) => aido.execs.kill(sandboxId, id, { signal }).catch(() => undefined);
  const stopForwarding = forwardSignals(context.signals, (signal) => void kill(signal));
  const feeding = interactive ? feedStdin(aido.execs, started, context.stdin, ended.signal) : undefined;
  try {
    const output = pumpOutput(context, aido.execs.output(sandboxId, id, { follow: true }), {
      onClosed: () => void kill("SIGTERM"),
    });
    output.catch(() => undefined);
    // Feeding may fail first; its end is not awaited, because a terminal's input does not end by itself.
    await (feeding === undefined ? output : Promise.race([output, feeding.then(() => output)]));
    const info = await aido.execs.wait(sandboxId, id);
    if (context.globals.json) await printJsonLine(context, { type: "end", ...info }).catch(() => undefined);
    else await explainEnd(context, info);
    return execExitCode(info);
  } finally {
    ended.abort();
    if (interactive) context.stdin.stop();
    stopForwarding();
  }
}
