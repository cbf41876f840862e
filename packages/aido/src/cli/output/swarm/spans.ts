import { printable } from "../printable.ts";
import { textWidth, truncate } from "../text-width.ts";

const CODES = { bold: "1", dim: "2", red: "31", green: "32", yellow: "33", cyan: "36" } as const;
export type Style = keyof typeof CODES;

/** More marks than any script puts on a letter: they take no column, so nothing else would bound them. */
const PILE = /(\p{M}{8})\p{M}+/gu;

/** A piece of a line. Its text is foreign until it is drawn. */
export type Span = string | readonly [text: string, style: Style];

/** One line in at most `width` columns: cut first, then coloured, so that no colour is left on. */
export function drawLine(spans: readonly Span[], width: number, colour: boolean): string {
  let left = width;
  let line = "";
  for (const span of spans) {
    const [text, style] = typeof span === "string" ? [span, undefined] : span;
    const whole = printable(text).replace(PILE, "$1");
    const shown = truncate(whole, left);
    left -= textWidth(shown);
    line +=
      colour && style !== undefined && shown !== "" ? `\u001b[${CODES[style]}m${shown}\u001b[0m` : shown;
    if (shown !== whole) break;
  }
  return colour ? line : line.trimEnd();
}

/** The text in exactly so many columns. */
export function padded(text: string, columns: number, align: "left" | "right" = "left"): string {
  const shown = truncate(printable(text), columns);
  const space = " ".repeat(Math.max(0, columns - textWidth(shown)));
  return align === "left" ? shown + space : space + shown;
}

const GAP = "  ";

/** The parts with gaps between them, as many as have room: one that has none ends the line. */
export function joinFitting(parts: readonly (readonly Span[])[], width: number): Span[] {
  const line: Span[] = [];
  let left = width;
  for (const part of parts) {
    const spans = line.length === 0 ? part : [GAP, ...part];
    left -= spans.reduce(
      (sum, span) => sum + textWidth(printable(typeof span === "string" ? span : span[0])),
      0,
    );
    if (left < 0 && line.length > 0) break;
    line.push(...spans);
  }
  return line;
}
