/** Whether a written path stays beneath the directory it is relative to, before links are looked at. */
export function isInnerPath(path: string): boolean {
  return !path.startsWith("/") && !path.split("/").includes("..") && !path.includes("\0");
}
