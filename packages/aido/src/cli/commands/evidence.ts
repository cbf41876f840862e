import type { Aido } from "@aido/sdk";
import { AidoError, type EvidenceEntry, type EvidenceVerdict, isAidoError } from "@aido/sdk/protocol";
import type { CliContext } from "../context.ts";
import { isBrokenPipe } from "../output/byte-sink.ts";
import { note, printJsonLine, printResult } from "../output/print.ts";
import { printable } from "../output/printable.ts";

/** One line per entry, printed as it is read: a long history needs no memory. */
export async function showEvidence(context: CliContext, sandbox: string): Promise<number> {
  const aido = await context.open();
  try {
    for await (const entry of aido.evidence.read(await toId(aido, sandbox))) {
      if (context.globals.json) await printJsonLine(context, entry);
      else await context.stdout.write(`${printable(line(entry))}\n`);
    }
  } catch (thrown) {
    if (!isBrokenPipe(thrown)) throw thrown;
  }
  return 0;
}

export async function verifyEvidence(context: CliContext, sandbox: string | undefined): Promise<number> {
  const aido = await context.open();
  const verdicts = await aido.evidence.verify(sandbox === undefined ? undefined : await toId(aido, sandbox));
  if (verdicts.length === 0) await note(context, "There is no evidence yet.");
  await printResult(context, verdicts, () => verdicts.map(describe).join(""));
  if (verdicts.every(({ ok }) => ok)) return 0;
  const broken = verdicts.filter(({ ok }) => !ok).map(({ sandboxId }) => sandboxId);
  if (context.globals.json) return new AidoError("EVIDENCE_BROKEN", "").exitCode;
  throw new AidoError("EVIDENCE_BROKEN", `The evidence of ${broken.join(", ")} is not as aido wrote it`, {
    hint: "Lines before the first problem can still be trusted.",
    details: { broken },
  });
}

/** Evidence is kept by id; names and beginnings of ids are known while the sandbox is there. */
async function toId(aido: Aido, sandbox: string): Promise<string> {
  try {
    return (await aido.sandboxes.get(sandbox)).id;
  } catch (thrown) {
    if (isAidoError(thrown, "CONTAINER_NOT_FOUND") || isAidoError(thrown, "CONTAINER_EXPIRED"))
      return sandbox;
    throw thrown;
  }
}

function line(entry: EvidenceEntry): string {
  const detail = entry.detail === undefined ? "" : `  ${JSON.stringify(entry.detail)}`;
  return `${String(entry.seq).padStart(4)}  ${entry.timestamp}  ${entry.event.padEnd(18)}  ${entry.actor}${detail}`;
}

function describe(verdict: EvidenceVerdict): string {
  const head = `${verdict.ok ? "ok    " : "BROKEN"}  ${printable(verdict.sandboxId)}  ${verdict.entries} entries\n`;
  return (
    head +
    verdict.problems
      .map((each) => `        line ${each.line}: ${each.problem}: ${printable(each.message)}\n`)
      .join("")
  );
}
