import type { Aido } from "@aido/sdk";
import { AidoError, isAidoError, type OutputChunk, type OutputStream } from "@aido/sdk/protocol";
import type { CliContext } from "../context.ts";
import { note } from "../output/print.ts";
import { pumpOutput } from "../output/pump-output.ts";

export interface LogsOptions {
  sandbox?: string;
  exec?: string;
  follow?: boolean;
  stdout?: boolean;
  stderr?: boolean;
  separate?: boolean;
}

type Chunks = AsyncIterable<OutputChunk & { step?: string | undefined }>;

/** Output goes where the task sent it, in the order it came; `--separate` shows one stream after the other. */
export async function logs(
  context: CliContext,
  positional: string | undefined,
  options: LogsOptions,
): Promise<number> {
  const sandbox = options.sandbox ?? positional;
  check(options, sandbox);
  const aido = await context.open({ sandbox });
  const exec = options.exec ?? (sandbox === undefined ? undefined : await newestExec(aido, sandbox));
  const stop = new AbortController();
  const source = (): Chunks => {
    const range = { follow: options.follow ?? false };
    return exec !== undefined && sandbox !== undefined
      ? aido.execs.output(sandbox, exec, range, stop.signal)
      : aido.runs.logs({ sandbox, ...range }, stop.signal);
  };
  const removers = (["SIGINT", "SIGTERM"] as const).map((name) =>
    context.signals.on(name, () => stop.abort()),
  );
  try {
    for (const hide of passes(options)) {
      if (options.separate) await note(context, `==> ${hide.includes("stdout") ? "stderr" : "stdout"} <==`);
      await pumpOutput(context, source(), { hide, onClosed: () => stop.abort() });
    }
  } catch (thrown) {
    if (!stop.signal.aborted) throw thrown;
  } finally {
    for (const remove of removers) remove();
  }
  return 0;
}

/** The exec that stands for a sandbox that was not made for runs; undefined for one that was. */
async function newestExec(aido: Aido, sandbox: string): Promise<string | undefined> {
  try {
    await aido.runs.get(sandbox);
    return undefined;
  } catch (thrown) {
    if (!isAidoError(thrown, "EXECUTION_CONFLICT")) throw thrown;
    const [newest] = await aido.execs.list(sandbox, { limit: 1 });
    if (newest === undefined) throw thrown;
    return newest.id;
  }
}

function check(options: LogsOptions, sandbox: string | undefined): void {
  if (options.exec !== undefined && sandbox === undefined) {
    throw new AidoError("VALIDATION_ERROR", "--exec needs the sandbox it ran in", {
      hint: `Write: aido logs <sandbox> --exec ${options.exec}`,
    });
  }
  if (options.separate && options.follow) {
    throw new AidoError("VALIDATION_ERROR", "--separate and --follow exclude each other", {
      hint: "Follow one stream with --stdout or --stderr.",
    });
  }
}

/** What each pass over the recorded output leaves out. */
function passes(options: LogsOptions): readonly (readonly OutputStream[])[] {
  const both = Boolean(options.stdout) === Boolean(options.stderr);
  if (options.separate && both) return [["stderr"], ["stdout"]];
  if (both) return [[]];
  return [[options.stdout ? "stderr" : "stdout"]];
}
