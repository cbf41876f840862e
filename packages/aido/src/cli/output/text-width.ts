/** Columns that a printable text takes on a terminal: combining marks none, wide letters and emoji two. */
export function textWidth(text: string): number {
  let width = 0;
  for (const char of text) width += charWidth(char);
  return width;
}

/** The text in at most `columns` columns; what is cut away is marked. */
export function truncate(text: string, columns: number): string {
  if (textWidth(text) <= columns) return text;
  if (columns < 1) return "";
  let kept = "";
  let width = 1;
  for (const char of text) {
    width += charWidth(char);
    if (width > columns) break;
    kept += char;
  }
  return `${kept}…`;
}

const COMBINING = /^[\p{Mn}\p{Me}]$/u;
/** Drawn as pictures unless told otherwise. Letters of flags are not among them: terminals draw these as letters or as flags. */
const EMOJI = /^(?![\u{1f1e6}-\u{1f1ff}])\p{Emoji_Presentation}$/u;
const WIDE: readonly (readonly [number, number])[] = [
  [0x1100, 0x115f],
  [0x2e80, 0x303e],
  [0x3041, 0xa4cf],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe30, 0xfe6f],
  [0xff00, 0xff60],
  [0xffe0, 0xffe6],
  [0x1f300, 0x1f64f],
  [0x1f680, 0x1f6ff],
  [0x1f900, 0x1f9ff],
  [0x20000, 0x3fffd],
];

function charWidth(char: string): number {
  const code = char.codePointAt(0) ?? 0;
  if (code < 0x300) return 1;
  if (COMBINING.test(char)) return 0;
  return WIDE.some(([from, to]) => code >= from && code <= to) || EMOJI.test(char) ? 2 : 1;
}
