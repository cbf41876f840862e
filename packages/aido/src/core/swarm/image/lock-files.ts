export type DependencyKind = "npm" | "pnpm" | "yarn" | "pip" | "uv" | "cargo" | "go";

export interface LockFile {
  readonly kind: DependencyKind;
  readonly file: string;
}

/** In this order; of one group only the first that is there counts, because the others lock the same packages. */
const GROUPS: readonly (readonly LockFile[])[] = [
  [
    { kind: "pnpm", file: "pnpm-lock.yaml" },
    { kind: "yarn", file: "yarn.lock" },
    { kind: "npm", file: "npm-shrinkwrap.json" },
    { kind: "npm", file: "package-lock.json" },
  ],
  [
    { kind: "uv", file: "uv.lock" },
    { kind: "pip", file: "requirements.txt" },
  ],
  [{ kind: "cargo", file: "Cargo.lock" }],
  [{ kind: "go", file: "go.sum" }],
];

/** What the files at the top of a project ask to be installed. */
export function findLockFiles(names: ReadonlySet<string>): readonly LockFile[] {
  return GROUPS.flatMap((group) => group.find(({ file }) => names.has(file)) ?? []);
}
