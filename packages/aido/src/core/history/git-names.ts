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

/** Git's own directory, which no tree of ours holds: what lies in it belongs to a repository in the workspace. */
export function isGitInternal(path: string): boolean {
  return path === ".git" || path.startsWith(".git/") || path.endsWith("/.git") || path.includes("/.git/");
}
