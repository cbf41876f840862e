import type { BatchAggregate, BatchItem } from "@aido/sdk/protocol";
import { printable } from "./printable.ts";
import { table } from "./table.ts";

interface Item {
  sidecarUrl?: string;
  sandboxId?: string;
  token?: string;
  exitCode?: number;
  stdout?: string;
  stderr?: string;
  success?: boolean;
  result?: string;
  error?: string | { code: string; message: string };
}

/** What became of each part, for people. All of it may come from sandboxes: no control character gets through. */
export function printBatchItems(
  result: object,
  items: readonly BatchItem<object>[],
  width: number | undefined,
): string {
  const { batchId = "", aggregate } = result as { batchId?: string; aggregate?: BatchAggregate };
  const rows = items as readonly Item[];
  const isCreate = rows.some(({ sandboxId }) => sandboxId !== undefined);
  const body = isCreate ? created(rows, width) : rows.map(described).join("");
  const end =
    aggregate === undefined
      ? ""
      : `${aggregate.aggregation}: ${aggregate.success ? lines(aggregate.result) : "no answer\n"}`;
  return `${body}${end}batch ${printable(batchId)}\n`;
}

function created(rows: readonly Item[], width: number | undefined): string {
  return table(
    rows,
    [
      { title: "SANDBOX", value: ({ sandboxId }) => sandboxId ?? "-" },
      // A token is of no use when it is cut.
      { title: "TOKEN", value: ({ token }) => token || "-" },
      { title: "PROBLEM", value: ({ error }) => messageOf(error) || "-", flexible: true },
    ],
    width === undefined ? undefined : Math.max(width, 120),
  );
}

function described(item: Item, index: number): string {
  const { sidecarUrl, exitCode, stdout = "", stderr = "", result = "", error } = item;
  const problem = messageOf(error);
  const state =
    exitCode === undefined
      ? problem === ""
        ? ""
        : `: ${problem}`
      : exitCode === 0
        ? ""
        : `: exit ${exitCode}`;
  const name = (sidecarUrl ?? "").split("/").at(-1) ?? "";
  return `== ${index + 1} ${printable(name)}${printable(state)}\n${lines(stdout)}${lines(stderr)}${lines(result)}`;
}

function messageOf(error: Item["error"]): string {
  return typeof error === "object" ? error.message : (error ?? "");
}

function lines(text: string): string {
  if (text === "") return "";
  return `${text.replace(/\n$/, "").split("\n").map(printable).join("\n")}\n`;
}
