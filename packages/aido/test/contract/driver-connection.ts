import { isAidoError } from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import type { DriverSuite } from "./driver-backend.ts";
import { launch } from "./launch.ts";
import { SupervisorClient } from "./supervisor-client.ts";

export function connectionContract({ make, hello, isolates }: DriverSuite): void {
  test("a command runs over the stream to the supervisor", async () => {
    await using backend = await make();
    await using client = (await launch(backend)).client;
    expect(await client.exec(hello)).toMatchObject({ exitCode: 0, stdout: "hello\n", stderr: "" });
  });

  test("several connections are open at once", async () => {
    await using backend = await make();
    const { id, token, client: first } = await launch(backend);
    await using second = await SupervisorClient.open(backend.driver, id, token);
    await using third = await SupervisorClient.open(backend.driver, id, token);
    expect(await Promise.all([first.ping(1), second.ping(2), third.ping(3)])).toEqual([1, 2, 3]);
    expect(await second.exec(hello)).toMatchObject({ exitCode: 0, stdout: "hello\n" });
  });

  test("a connection that is dropped leaves the sandbox as it is", async () => {
    await using backend = await make();
    const { id, token, client } = await launch(backend);
    await client[Symbol.asyncDispose]();
    await using again = await SupervisorClient.open(backend.driver, id, token);
    expect(await again.exec(hello)).toMatchObject({ exitCode: 0, stdout: "hello\n" });
  });

  test("a supervisor that is claimed refuses another token", async () => {
    await using backend = await make();
    const { id } = await launch(backend);
    const wrong = SupervisorClient.open(backend.driver, id, SupervisorClient.newToken());
    await expect(wrong).rejects.toThrow(/DENIED/);
  });

  test("a sandbox that was stopped is not reachable, and is again after a start", async () => {
    await using backend = await make();
    const { id } = await launch(backend);
    await backend.driver.stop(id, 2_000);
    await expect(backend.driver.connect(id)).rejects.toSatisfy((error) =>
      isAidoError(error, "CONTAINER_NOT_RUNNING"),
    );
    await backend.driver.start(id);
    await using client = await SupervisorClient.open(backend.driver, id, SupervisorClient.newToken());
    expect(await client.ping(7)).toBe(7);
  });

  test.runIf(isolates)("a command started by one process goes on under the next", async () => {
    await using backend = await make();
    const { id, token, client } = await launch(backend);
    await client.exec(["/bin/sh", "-c", "echo before > /work/kept"]);
    await client[Symbol.asyncDispose]();
    await backend.driver.close();
    await using later = await SupervisorClient.open(await backend.reopen(), id, token);
    expect(await later.exec(["/bin/sh", "-c", "cat /work/kept"])).toMatchObject({
      exitCode: 0,
      stdout: "before\n",
    });
  });

  test.runIf(isolates)("a megabyte of output arrives whole", async () => {
    await using backend = await make();
    await using client = (await launch(backend)).client;
    const script =
      "i=0; while [ $i -lt 16384 ]; do echo 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde; i=$((i+1)); done";
    const { stdout, exitCode } = await client.exec(["/bin/sh", "-c", script]);
    expect(exitCode).toBe(0);
    expect(stdout.length).toBe(16_384 * 64);
  });
}
