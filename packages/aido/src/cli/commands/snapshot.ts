import { AidoError } from "@aido/sdk/protocol";
import type { CliContext } from "../context.ts";
import { formatBytes } from "../output/format.ts";
import { printResult } from "../output/print.ts";
import { printable } from "../output/printable.ts";
import { interruptible } from "./interrupt.ts";

export interface SnapshotOptions {
  to?: string;
  from?: string;
  sha256?: string;
  state?: boolean;
}

/** Takes one, or with `--from` puts one back. */
export async function snapshot(
  context: CliContext,
  sandbox: string,
  options: SnapshotOptions,
): Promise<number> {
  const { to, from, sha256, state } = options;
  if (from !== undefined && (to !== undefined || state === true)) {
    throw new AidoError("VALIDATION_ERROR", "--from puts a snapshot back and goes with --sha256 only");
  }
  if (from === undefined && sha256 !== undefined) {
    throw new AidoError("VALIDATION_ERROR", "--sha256 goes with --from");
  }
  const aido = await context.open();
  return await interruptible(context, async (signal) => {
    const how = { signal, onProgress: context.progress.show };
    if (from !== undefined) {
      await aido.snapshots.restore(sandbox, from, { sha256, ...how });
      context.progress.clear();
      const done = { sandbox, url: from, restored: true };
      await printResult(
        context,
        done,
        () => `The files of ${printable(sandbox)} are those of the snapshot\n`,
      );
      return 0;
    }
    const taken = await aido.snapshots.take(sandbox, { destination: to, includeState: state, ...how });
    context.progress.clear();
    await printResult(
      context,
      taken,
      () => `${printable(taken.url)}\n${formatBytes(taken.bytes)}, sha256 ${taken.sha256}\n`,
    );
    return 0;
  });
}
