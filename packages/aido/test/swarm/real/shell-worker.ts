import type { RealSwarmOptions } from "./real-swarm.ts";

/** `say type payload` is a message; `story id status` a story's transition; `go` waits for `letGo`. */
const WORDS = `
say() { printf '{"type":"%s","timestamp":"2026-01-05T10:00:00Z","swarmId":"%s","containerId":"%s","payload":%s}\\n' "$1" "$SWARM_ID" "$CONTAINER_ID" "$2"; }
story() { say progress-update "{\\"storyId\\":\\"$1\\",\\"status\\":\\"$2\\",\\"output\\":\\"\\"}"; }
done_() { say completion '{"status":"completed","prUrl":null,"errors":[]}'; }
go() { while [ ! -e /tmp/go ]; do sleep 0.05; done; }
`;

/** For workers whose image has a shell script as its adapter: what that does. */
export const shellWorker = (script: string): Pick<RealSwarmOptions, "env"> => ({
  env: { KIND: "script", SCRIPT: `${WORDS}\n${script}` },
});
