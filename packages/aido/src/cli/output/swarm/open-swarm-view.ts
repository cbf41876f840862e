import { shortWorkerName } from "../../../core/swarm/workers/worker-name.ts";
import type { CliContext } from "../../context.ts";
import { warn } from "../print.ts";
import { printable, printableJson } from "../printable.ts";
import { usesColour } from "../uses-colour.ts";
import { BoardScreen } from "./board-screen.ts";
import { eventJson } from "./event-json.ts";
import { eventLines } from "./event-lines.ts";
import { drawLine } from "./spans.ts";
import { type StreamFormat, StreamView } from "./stream-view.ts";
import type { SwarmView } from "./swarm-view.ts";

const LEAST_ROWS = 3;
const LEAST_COLUMNS = 20;

/**
 * A board on a terminal, lines elsewhere, one JSON value a line with `--json`, only warnings with `--quiet`. Whoever opens one also
 * handles signals until it is closed, and writes nothing else meanwhile.
 */
export function openSwarmView(context: CliContext): SwarmView {
  const { globals, stdout, env } = context;
  if (globals.json) return new StreamView(stdout, asJson(context));
  if (globals.quiet) return quietView(context);
  const colour = usesColour(env, stdout);
  return isBoardTerminal(context)
    ? new BoardScreen(context, colour)
    : new StreamView(stdout, asLines(colour));
}

function isBoardTerminal({ stdout, env, signals }: CliContext): boolean {
  const term = env["TERM"] ?? "";
  if (!stdout.isTerminal || term === "" || term === "dumb") return false;
  const { rows, cols } = signals.terminalSize();
  return rows >= LEAST_ROWS && cols >= LEAST_COLUMNS;
}

function asJson(context: CliContext): StreamFormat {
  return {
    lines: eventJson,
    omitted: (count) => printableJson({ type: "omitted", at: context.now(), count }),
  };
}

function asLines(colour: boolean): StreamFormat {
  return {
    lines: (before, after, event) =>
      eventLines(before, after, event).map((line) => drawLine(line, Number.POSITIVE_INFINITY, colour)),
    omitted: (count) => `(${count} lines left out: their reader was too slow)`,
  };
}

function quietView(context: CliContext): SwarmView {
  return {
    show: (event) => {
      if (event.type !== "warning") return;
      const { worker, message } = event;
      void warn(
        context,
        printable(worker === undefined ? message : `${shortWorkerName(worker)}: ${message}`),
      );
    },
    close: () => Promise.resolve(),
  };
}
