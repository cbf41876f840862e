import { describe, expect, test } from "vitest";
import { ServerBed, until } from "./server-bed.ts";

const start = (env: Record<string, string>) =>
  ServerBed.start({ driver: "local", env: { SIDECAR_IMAGE: "host", QOS_ENABLED: "true", ...env } });

describe("QoS and capacity of the server, with the local driver", () => {
  test("S2-83 S2-126 S2-129 a dry run writes what was counted to its log until the server is shut down; no sandbox beyond the capacity", async () => {
    const env = {
      QOS_DRY_RUN: "true",
      QOS_METRICS_INTERVAL_SECS: "1",
      SERVICE_ID: "7",
      OPERATOR_MAX_CAPACITY: "1",
    };
    await using bed = await start(env);
    const { sandboxId } = (await bed.post("/api/jobs/0", {})).json;
    const exec = { sidecar_url: sandboxId, command: "echo hi" };
    expect((await bed.post("/api/jobs/10", exec)).json).toMatchObject({ stdout: "hi\n" });
    const second = await bed.post("/api/jobs/0", {});
    expect([second.status, second.json.error.code]).toEqual([429, "QUOTA_EXCEEDED"]);
    const reports = () =>
      bed.stderr
        .split("\n")
        .filter((line) => line.includes('"qos.snapshot"'))
        .map((line) => JSON.parse(line) as { serviceId: string; metrics: { name: string; value: number }[] });
    const reported = (name: string) =>
      reports()
        .at(-1)
        ?.metrics.find((one) => one.name === name)?.value;
    await until("a report has all three jobs", () => reported("total_jobs") === 3);
    expect(reported("failed_jobs")).toBe(1);
    expect(reported("peak_sandboxes")).toBe(1);
    expect(reports().at(-1)?.serviceId).toBe("7");
    await bed.signal("SIGTERM");
    expect(bed.child.exitCode).toBe(0);
  });

  test("S2-126 S2-127 S2-128 without a chain runner a server that is to submit does not start, and says what to type", async () => {
    const refused = start({ SERVICE_ID: "7" });
    await expect(refused).rejects.toThrow(
      /exit 2\n[\s\S]*no chain runner[\s\S]*BLUEPRINT_ID is not set[\s\S]*QOS_DRY_RUN=true/,
    );
  });
});
