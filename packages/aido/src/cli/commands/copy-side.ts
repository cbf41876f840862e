/** One side of a copy: a path here, or a path in a sandbox. */
export interface CopySide {
  sandbox: string | undefined;
  path: string;
}

/** `name:path` is in a sandbox unless a slash stands before the colon, as in `./a:b`. */
export function parseCopySide(text: string): CopySide {
  const colon = text.indexOf(":");
  const slash = text.indexOf("/");
  if (colon < 1 || (slash >= 0 && slash < colon)) return { sandbox: undefined, path: text };
  return { sandbox: text.slice(0, colon), path: text.slice(colon + 1) || "." };
}

/** A target written as a directory: the copy goes inside it. */
export function namesDirectory(path: string): boolean {
  return /(^|\/)\.{0,2}$/.test(path);
}
