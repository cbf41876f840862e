/**
 * C0, DEL, C1, line separators, bidirectional overrides and lone surrogates: everything that can move a cursor,
 * hide text or show it in another order.
 */
const UNPRINTABLE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a terminal
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Foreign text on one line of a terminal: what could act on the terminal is shown as an escape instead. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (char) => {
    const code = char.charCodeAt(0);
    return code < 0x100
      ? `\\x${code.toString(16).padStart(2, "0")}`
      : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

/** As `printable`, keeping line breaks: for messages that are written in several lines on purpose. */
export function printableLines(text: string): string {
  return text.split("\n").map(printable).join("\n");
}

/** JSON whose text is as harmless on a terminal as it is valid. */
export function printableJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, undefined, indent).replace(UNPRINTABLE, (char) =>
    char === "\n" ? char : `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
