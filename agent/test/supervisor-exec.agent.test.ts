import { expect, test } from "vitest";
import { AgentProcess } from "./agent-process.ts";

test("a command's output, exit code and totals arrive", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const result = await client.run("e1", ["/bin/sh", "-c", "echo out; echo err >&2; exit 7"]);
  expect(result).toMatchObject({ how: 1, code: 7, flags: 0 });
  expect(result.stdout.toString()).toBe("out\n");
  expect(result.stderr.toString()).toBe("err\n");
  expect(result.end).toMatchObject({ stdoutTotal: 4, stderrTotal: 4 });
});
