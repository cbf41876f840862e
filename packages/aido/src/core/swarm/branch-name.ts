const BRANCH_NAME = /^[a-zA-Z0-9][a-zA-Z0-9/_-]*$/;

/** Git itself refuses an empty part between slashes, so such a name would only fail later. */
export function isBranchName(name: string): boolean {
  return name.length <= 200 && BRANCH_NAME.test(name) && !name.includes("//") && !name.endsWith("/");
}

export const BRANCH_NAME_RULE =
  "letters, digits, `/`, `_` and `-`, beginning with a letter or digit, at most 200 of them";
