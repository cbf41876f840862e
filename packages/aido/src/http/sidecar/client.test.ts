import { expect, test } from "vitest";
import { SidecarBed } from "../../../test/server/sidecar-bed.ts";

test("S2-134 the SDK's client and the server agree about commands, files and health", async () => {
  await using bed = await SidecarBed.open();
  const client = bed.client();
  expect(await client.health()).toBe(true);
  expect(await client.exec({ command: "echo hi; exit 3", timeoutMs: 5_000 })).toMatchObject({
    exitCode: 3,
    stdout: "hi\n",
  });
  expect(await client.writeFile("a/b.txt", "text")).toMatchObject({ size: 4 });
  expect(await client.readFile("a/b.txt")).toBe("text");
  expect(await client.readFile("a/b.txt", "base64")).toBe("dGV4dA==");
  await expect(client.readFile("/etc/passwd")).rejects.toMatchObject({ code: "FORBIDDEN" });
  await expect(bed.client("wrong").exec({ command: "true" })).rejects.toThrow("HTTP 403: ");
  await bed.api.post(`/api/sandbox/${bed.id}/stop`, {});
  expect(await client.health()).toBe(false);
});

test("S2-134 the SDK's client and the server agree about terminals", async () => {
  await using bed = await SidecarBed.open();
  const client = bed.client();
  const { sessionId } = await client.openTerminal({ name: "one", cols: 100, rows: 30 });
  expect(await client.terminals()).toMatchObject([{ sessionId, name: "one", isRunning: true }]);
  await client.resize(sessionId, { rows: 40, cols: 120 });
  await client.execute(sessionId, "echo typed");
  await client.input(sessionId, "exit 4\n");
  let text = "";
  let code: number | undefined;
  for await (const event of client.stream(sessionId)) {
    if (event.type === "output") text += event.data;
    else code = event.code;
  }
  expect([text, code]).toEqual(["$ echo typed\ntyped\n$ exit 4\n", 4]);
  await expect(client.input(sessionId, "x")).rejects.toMatchObject({ code: "TERMINAL_CLOSED" });
  const second = await client.openTerminal();
  await client.closeTerminal(second.sessionId);
  await expect(client.terminal(second.sessionId)).rejects.toMatchObject({ code: "TERMINAL_NOT_FOUND" });
});
