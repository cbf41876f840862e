import type { AgentDefinition } from "./agent-adapter.ts";

const acp = (
  identifier: string,
  displayName: string,
  argv: readonly string[],
  from: string,
): AgentDefinition => ({
  identifier,
  kind: "acp",
  displayName,
  description: `${displayName} over the Agent Client Protocol; the image must have \`${argv[0]}\` (${from})`,
  argv,
  env: {},
  permissions: "allow",
});

/** Agents that need no settings: a sandbox whose image has the program can run them. */
export const KNOWN_AGENTS: readonly AgentDefinition[] = [
  {
    identifier: "claude",
    kind: "claude",
    displayName: "Claude Code",
    description: "Claude Code without its terminal; the image must have `claude` (@anthropic-ai/claude-code)",
    argv: ["claude"],
    env: {},
    permissions: "allow",
  },
  acp("claude-acp", "Claude Agent", ["claude-agent-acp"], "@agentclientprotocol/claude-agent-acp"),
  acp("codex", "Codex", ["codex-acp"], "@zed-industries/codex-acp"),
  acp("gemini", "Gemini CLI", ["gemini", "--acp"], "@google/gemini-cli"),
  acp("opencode", "OpenCode", ["opencode", "acp"], "opencode-ai"),
];
