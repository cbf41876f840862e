/** As the schema of a swarm's state has it, which others read too. */
export const BRANCH_NAME_PATTERN = "^[a-zA-Z0-9][a-zA-Z0-9/_-]*$";
const BRANCH_NAME = new RegExp(BRANCH_NAME_PATTERN);

/** Git itself refuses an empty part between slashes, so such a name would only fail later. */
export function isBranchName(name: string): boolean {
  return name.length <= 200 && BRANCH_NAME.test(name) && !name.includes("//") && !name.endsWith("/");
}

export const BRANCH_NAME_RULE =
  "letters, digits, `/`, `_` and `-`, beginning with a letter or digit, at most 200 of them";
