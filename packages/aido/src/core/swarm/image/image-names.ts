export const BASE_IMAGE = "aimi-sandbox:base";
/** Debian's packages, imported: what the base starts from where no image is to be had. */
export const DEBIAN_IMAGE = "aimi-sandbox:debian";
/** What the base starts from unless it is told. */
export const PUBLIC_GROUND = "node:20-slim";
/** Other tools read and write the same label. */
export const CHECKSUM_LABEL = "org.aimi.dockerfile-checksum";
/** On the base: what it starts from, so that it is made anew in the same way. */
export const GROUND_LABEL = "org.aimi.base-from";
/** On the base: the version of the Claude Code CLI in it, or `none`. */
export const CLAUDE_LABEL = "org.aimi.claude-code";
/** On a project's image: the commit whose files it has. */
export const COMMIT_LABEL = "org.aimi.source-commit";

export const projectImage = (slug: string) => `aimi-sandbox-${slug}:latest`;

/** A name that only builds on this machine give: whether `image` may be asked for elsewhere is then no question. */
export function isSwarmImage(image: string): boolean {
  return /^aimi-sandbox(-[a-z0-9]+)*(:[a-zA-Z0-9][a-zA-Z0-9_.-]{0,60})?$/.test(image);
}
