import type { TaskRequest } from "../../src/core/swarm/messages/message.ts";

export const SWARM_ID = "1b4e28ba-2fa1-41d2-883f-0016d3cca427";

export const TASK: TaskRequest = {
  type: "task-request",
  timestamp: "2026-02-16T00:00:00.000Z",
  swarmId: SWARM_ID,
  containerId: "0123456789ab",
  payload: {
    taskFilePath: ".aimi/tasks/2026-02-16-login-tasks.json",
    branchName: "feat/login",
    repoUrl: "https://example.com/shop.git",
    envVars: {},
  },
};

/** KIND is what the adapter of a bed does: echo, fail, wait or script; it has read its whole input before. */
export const startOf = (kind: string, env: Record<string, string> = {}) => ({
  request: TASK,
  env: { KIND: kind, ...env },
});
