/** What a job remembers about a sandbox it has made. Never shown, never set by a caller. */
export const AGENT_LABEL = "dev.aido.agent-identifier";
export const WEB_TERMINAL_LABEL = "dev.aido.web-terminal";
