const MAX_LENGTH = 4096;
/** Characters that mean themselves in every shell. */
const PLAIN = /^[A-Za-z0-9._:/-]+$/;
/** A JSON object of plain names and numbers; in single quotes no shell does anything with it. */
const JSON_WORD = /^\{[a-zA-Z0-9":, ]*\}$/;
const LINE_WORD = / *(?:'(\{[a-zA-Z0-9":, ]*\})'|([A-Za-z0-9._:/-]+))(?= |$)/y;

/**
 * The words of a command, or why it is refused. There is no shell grammar here on purpose: whatever a shell might
 * read in another way than it looks is refused instead of understood.
 */
export function splitCommand(given: readonly string[]): { words: readonly string[] } | { reason: string } {
  if (given.reduce((sum, { length }) => sum + length + 1, 0) > MAX_LENGTH) {
    return { reason: `the command is longer than ${MAX_LENGTH} characters` };
  }
  if (given.length === 1) return splitLine(given[0] ?? "");
  for (const word of given) {
    if (!PLAIN.test(word) && !JSON_WORD.test(word)) return { reason: describe(word) };
  }
  return given.length === 0 ? { reason: "there is no command" } : { words: given };
}

function splitLine(line: string): { words: readonly string[] } | { reason: string } {
  const text = line.replace(/ +$/, "");
  const words: string[] = [];
  LINE_WORD.lastIndex = 0;
  while (LINE_WORD.lastIndex < text.length) {
    const found = LINE_WORD.exec(text);
    if (found === null) return { reason: describe(text) };
    words.push(found[1] ?? found[2] ?? "");
  }
  return words.length === 0 ? { reason: "there is no command" } : { words };
}

/** Names the character, since it may be one nobody sees. */
function describe(text: string): string {
  if (text === "") return "a word is empty";
  const character = /[^A-Za-z0-9._:/ -]/u.exec(text)?.[0];
  if (character === undefined) return "a word has a blank in it";
  const code = `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
  return `it has ${/^[!-~]$/.test(character) ? `${character} (${code})` : code}, and only plain words are approved`;
}
