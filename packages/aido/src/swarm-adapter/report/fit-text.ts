// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be passed on
const TERMINAL_CODES = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?)/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be passed on
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** What an agent or a program said, without what could act on a terminal. Line breaks and tabs stay. */
export function plainText(text: string): string {
  return text.replace(/\r\n?/g, "\n").replace(TERMINAL_CODES, "").replace(CONTROLS, "");
}

/** At most so many characters, counted as messages count them; cut at the end. */
export function firstChars(text: string, most: number): string {
  if (text.length <= most) return text;
  const chars = [...text.slice(0, most * 2)];
  return chars.length <= most ? text.slice(0, most * 2) : `${chars.slice(0, most - 1).join("")}…`;
}

/** The same, cut at the beginning: what was said last tells most. */
export function lastChars(text: string, most: number): string {
  if (text.length <= most) return text;
  const chars = [...text.slice(-most * 2)];
  return chars.length <= most ? text.slice(-most * 2) : `…${chars.slice(-(most - 1)).join("")}`;
}

/** On one line. */
export function oneLine(text: string): string {
  return plainText(text).replace(/\s+/g, " ").trim();
}
