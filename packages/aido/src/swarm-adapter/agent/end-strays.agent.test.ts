import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { AgentProcess } from "../../../../../agent/test/agent-process.ts";
import { bundle } from "../../../test/processes/bundle.ts";
import { EXEC_FLAG } from "../../core/supervisor/protocol.ts";
import { AdapterBed, readOutput } from "../testing/adapter-bed.ts";

test("S1-72 what an agent leaves behind ends with its story, also when it hides its origin, its group and its mark", async () => {
  using bed = new AdapterBed();
  using built = await bundle(new URL("../main.ts", import.meta.url));
  const { directory } = bed.bed;
  const [pid, beats] = [join(directory, "pid"), join(directory, "beats")];
  const stray = `echo $$ > ${pid}; trap "" TERM HUP; while :; do echo beat >> ${beats}; sleep 0.02; done`;
  // The second story looks whether what the first one left is still at work.
  const script = `if [ "$story" = US-001 ]; then (env -i PATH="$PATH" setsid sh -c '${stray}' </dev/null >/dev/null 2>&1 &)
while [ ! -s ${pid} ]; do sleep 0.02; done
else kill -0 "$(cat ${pid})" 2>/dev/null && [ "$(cut -d ' ' -f 3 "/proc/$(cat ${pid})/stat")" != Z ] && { echo alive; exit 1; }; fi; echo done`;
  await using agent = await AgentProcess.start();
  const client = await agent.open(directory);
  const env = Object.entries({ ...bed.env, ...bed.agent(script) }).map(([name, value]) => `${name}=${value}`);
  const request = Buffer.from(bed.requestLine());
  client.exec("adapter", [process.execPath, built.program], { env, flags: EXEC_FLAG.stdin });
  client.stdin("adapter", 0, request);
  client.stdinClose("adapter", request.length);
  const { code, stdout } = await client.end("adapter");
  expect(code).toBe(0);
  expect(existsSync(`/proc/${readFileSync(pid, "utf8").trim()}`)).toBe(false);
  const { last, steps } = readOutput(stdout.toString());
  expect(last.payload.errors).toEqual([]);
  expect(steps).toEqual(["US-001 in_progress", "US-001 completed", "US-002 in_progress", "US-002 completed"]);
});
