/**
 * The commands of a swarm that an agent's host may run without asking. A command passes when it is one of these, word
 * for word: there is no other way in, no wildcard, and no option that is not named here.
 *
 * A word of `command` is literal (`a|b` is either), `<name>` is a word of that shape, `[<name>]` may be left out.
 * `options` come behind them in any order, each at most once, with a value of the named shape or (null) without one.
 */
export interface ApprovalPolicy {
  readonly version: 1;
  /** Regular expressions; a word matches as a whole. */
  readonly words: Readonly<Record<string, string>>;
  readonly allow: readonly ApprovalRule[];
}

export interface ApprovalRule {
  readonly rule: string;
  readonly command: readonly string[];
  readonly options?: Readonly<Record<string, string | null>>;
  readonly needsOption?: true;
}

/** Found on PATH, never by a path: a repository could hold a program of the same name. */
const MANAGER = "sandbox-manager|sandbox-manager.sh";
const BUILDER = "build-image|build-project-image|build-project-image.sh";
const CLI = "aido|aimi-cli|aimi-cli.sh";

/** Under its own name, and as aido's command. */
const manager = (...command: string[]): ApprovalRule[] => [
  { rule: "sandbox-manager", command: [MANAGER, ...command] },
  { rule: "sandbox-manager", command: ["aido", "sandbox-manager", ...command] },
];
const swarm = (command: string[], more: Omit<ApprovalRule, "rule" | "command"> = {}): ApprovalRule => ({
  rule: "swarm",
  command: [CLI, ...command],
  ...more,
});
const adapter = (...command: string[]): ApprovalRule => ({
  rule: "adapter",
  command: ["docker", "exec", "-i", "<container>", ...command],
});

export const APPROVAL_POLICY: ApprovalPolicy = {
  version: 1,
  words: {
    container: "aimi-[a-zA-Z0-9][a-zA-Z0-9_-]{0,120}",
    containerId: "[0-9a-f]{12,64}",
    image: "aimi-sandbox(-[a-z0-9]+)*:[a-zA-Z0-9][a-zA-Z0-9_.-]{0,60}",
    taskFile: "\\.aimi/tasks/[a-zA-Z0-9][a-zA-Z0-9_-]*-tasks\\.json",
    branch: "[a-zA-Z0-9][a-zA-Z0-9_-]*(/[a-zA-Z0-9_-]+)*",
    // That it is a directory of the project, and no link that leads out of it, is looked up besides.
    projectPath: "\\.|(\\./)?[a-zA-Z0-9_][a-zA-Z0-9._-]*(/[a-zA-Z0-9_][a-zA-Z0-9._-]*)*/?",
    status: "pending|running|completed|failed|stopped",
    prUrl: "https://[a-zA-Z0-9][a-zA-Z0-9.-]*(/[a-zA-Z0-9._-]+)*",
    progress: '\\{ ?("(total|completed|failed|inProgress|pending)": ?[0-9]{1,6}(, ?|(?= ?\\}))){5} ?\\}',
    pid: "null|[1-9][0-9]{0,9}",
  },
  allow: [
    ...manager("create", "<container>", "<image>", "[<taskFile>]", "[<branch>]"),
    ...manager("status|remove|rm", "<container>"),
    ...manager("list|ls|cleanup|clean|check-runtime|help"),
    { rule: "build-image", command: [BUILDER, "[<projectPath>]"] },
    { rule: "build-image", command: [CLI, "build-image", "[<projectPath>]"] },
    swarm(["swarm-init"], { options: { "--force": null } }),
    swarm(["swarm-add", "<containerId>", "<container>", "<taskFile>", "<branch>"]),
    swarm(["swarm-update", "<container>"], {
      options: {
        "--status": "status",
        "--pr-url": "prUrl",
        "--story-progress": "progress",
        "--acp-pid": "pid",
      },
      needsOption: true,
    }),
    swarm(["swarm-remove", "<container>"]),
    swarm(["swarm-status|swarm-list|swarm-cleanup"]),
    swarm(["swarm-tasks", "[<taskFile>]"]),
    adapter("/opt/aimi/acp-adapter"),
    adapter("node", "/opt/aimi/acp-adapter.mjs|/opt/aimi/acp-adapter.cjs|/opt/aimi/acp-adapter.js"),
    adapter("python3", "/opt/aimi/acp-adapter.py"),
  ],
};
