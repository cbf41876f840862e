import type { EvidenceProblem, EvidenceVerdict } from "@aido/sdk/protocol";
import type { EvidenceHead } from "../store/store.ts";
import { GENESIS, hashOf, parseLine, toLine } from "./evidence-line.ts";

/** Reads a log against itself and against the head that the store keeps; names every line that is not as written. */
export async function verifyEvidence(
  sandboxId: string,
  lines: AsyncIterable<string>,
  head: EvidenceHead | undefined,
): Promise<EvidenceVerdict> {
  const problems: EvidenceProblem[] = [];
  const report = (line: number, problem: EvidenceProblem["problem"], message: string) =>
    problems.push({ line, problem, message });
  let line = 0;
  let entries = 0;
  let end: End = { seq: 0, hash: GENESIS, unread: 0 };
  for await (const text of lines) {
    line += 1;
    const entry = parseLine(text);
    if (entry === undefined) {
      report(line, "unreadable", `Line ${line} is not an entry`);
      end = { ...end, unread: end.unread + 1 };
      continue;
    }
    entries += 1;
    if (entry.hash !== hashOf(entry) || `${text}\n` !== toLine(entry)) {
      report(line, "changed", `Line ${line} is not as it was written`);
      end = { ...end, unread: end.unread + 1 };
      continue;
    }
    const [expected, latest] = [end.seq + 1, end.seq + 1 + end.unread];
    if (entry.seq < expected) {
      report(line, "reordered", `Line ${line} holds entry ${entry.seq}, which belongs before it`);
      continue;
    }
    if (entry.seq > latest) {
      const last = entry.seq - 1;
      const missing = last === latest ? `Entry ${latest} is` : `Entries ${latest} to ${last} are`;
      report(line, "removed", `${missing} missing before line ${line}`);
    } else if (entry.seq === expected && entry.prev !== end.hash) {
      report(line, "changed", `Line ${line} does not continue the line before it`);
    }
    end = { seq: entry.seq, hash: entry.hash, unread: 0 };
  }
  compareWithHead(head, end, line, report);
  return { sandboxId, entries, ok: problems.length === 0, problems };
}

/** The last good entry, and the lines since then that may have been entries once. */
interface End {
  seq: number;
  hash: string;
  unread: number;
}

function compareWithHead(
  head: EvidenceHead | undefined,
  end: End,
  line: number,
  report: (line: number, problem: EvidenceProblem["problem"], message: string) => void,
): void {
  if (head === undefined) return;
  const missing = head.seq - end.seq - end.unread;
  if (missing > 0) {
    const text = missing === 1 ? "the last entry is missing" : `the last ${missing} entries are missing`;
    report(line + 1, "truncated", `The log ends after line ${line}; ${text}`);
  } else if (end.seq === head.seq && end.hash !== head.hash) {
    report(line, "changed", `Line ${line} is not the last entry that was recorded`);
  }
}
