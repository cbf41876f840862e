const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A name (bytes as latin1 text) as users see it: as it is when it is UTF-8, else as git quotes it, so that none is lost. */
export function shownName(latin1: string): string {
  try {
    return decoder.decode(Buffer.from(latin1, "latin1"));
  } catch {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is quoted
    return `"${latin1.replace(/[\x00-\x1f"\\\x7f-\xff]/g, quoted)}"`;
  }
}

function quoted(character: string): string {
  if (character === '"' || character === "\\") return `\\${character}`;
  return `\\${character.charCodeAt(0).toString(8).padStart(3, "0")}`;
}

/**
 * Git refuses trees that hold its own directory's name, and a workspace may hold whole repositories. So `.git` is stored as
 * `.git%`, `.git%` as `.git%%` and so on; every other name is stored as it is.
 */
export function storedName(name: string): string {
  return /^\.git%*$/.test(name) ? `${name}%` : name;
}

/** The path that a stored one stands for. */
export function originalPath(stored: string): string {
  if (!stored.includes(".git%")) return stored;
  return stored
    .split("/")
    .map((name) => (/^\.git%+$/.test(name) ? name.slice(0, -1) : name))
    .join("/");
}
