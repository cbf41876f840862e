const CHARACTERS = /^[a-zA-Z0-9_./@#=-]+$/;

/**
 * Whether this may be the name of a branch here. Narrower than git's own rule: no character that means something to a shell,
 * because such names are part of what users are told to type.
 */
export function isRefName(name: string): boolean {
  if (name.length > 200 || !CHARACTERS.test(name) || name.startsWith("-") || name === "@") return false;
  if (name.includes("..") || name.endsWith(".")) return false;
  return name.split("/").every((part) => part !== "" && !part.startsWith(".") && !part.endsWith(".lock"));
}

/** A branch as one part of a ref: `a` and `a/b` can then be there together. */
export function flatName(branch: string): string {
  return branch.replaceAll("/", "+");
}
