import { printable } from "./printable.ts";
import { textWidth, truncate } from "./text-width.ts";

export interface Column<Row> {
  title: string;
  value: (row: Row) => string;
  align?: "left" | "right";
  /** Gives way when the terminal is too narrow. */
  flexible?: boolean;
}

const GAP = "  ";
const NARROWEST = 8;

/** Aligned columns; cells are made printable here, so no caller can forget it. `width` undefined means no limit. */
export function table<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  width: number | undefined,
): string {
  const cells = rows.map((row) => columns.map((column) => printable(column.value(row))));
  const widths = columns.map((column, index) =>
    Math.max(textWidth(column.title), ...cells.map((line) => textWidth(line[index] ?? ""))),
  );
  if (width !== undefined) shrink(widths, columns, width);
  const lines = [columns.map((column) => column.title), ...cells];
  return lines.map((line) => `${layOut(line, columns, widths).trimEnd()}\n`).join("");
}

function shrink<Row>(widths: number[], columns: readonly Column<Row>[], width: number): void {
  const total = () => widths.reduce((sum, each) => sum + each, GAP.length * (widths.length - 1));
  for (;;) {
    const excess = total() - width;
    if (excess <= 0) return;
    let widest = -1;
    for (const [index, column] of columns.entries()) {
      const own = widths[index] ?? 0;
      if (column.flexible && own > NARROWEST && own > (widths[widest] ?? 0)) widest = index;
    }
    if (widest < 0) return;
    widths[widest] = Math.max(NARROWEST, (widths[widest] ?? 0) - Math.min(excess, 1));
  }
}

function layOut<Row>(
  line: readonly string[],
  columns: readonly Column<Row>[],
  widths: readonly number[],
): string {
  return line
    .map((cell, index) => {
      const width = widths[index] ?? 0;
      const text = truncate(cell, width);
      const padding = " ".repeat(Math.max(0, width - textWidth(text)));
      return columns[index]?.align === "right" ? padding + text : text + padding;
    })
    .join(GAP);
}
