import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { DriverSuite } from "./driver-backend.ts";
import { launch } from "./launch.ts";

export function isolationContract({ make }: DriverSuite): void {
  test("S0-81 S0-82 S3-8 S3-35 S3-38 commands run as an ordinary user without capabilities, new privileges or free system calls", async () => {
    await using backend = await make();
    const { sh, container } = await launch(backend);
    const { stdout } = await sh("cat /proc/self/status");
    const status = new Map(stdout.split("\n").map((line) => line.split(/:\s+/) as [string, string]));
    const ids = (user: number) => new Array(4).fill(user).join("\t");
    expect(container.user.uid).not.toBe(0);
    expect(status.get("Uid")).toBe(ids(container.user.uid));
    expect(status.get("Gid")).toBe(ids(container.user.gid));
    for (const set of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]) {
      expect(`${set} ${status.get(set)}`).toBe(`${set} 0000000000000000`);
    }
    expect(status.get("NoNewPrivs")).toBe("1");
    expect(status.get("Seccomp")).toBe("2");
  });

  test("a user that is asked for is used", async ({ skip }) => {
    await using backend = await make();
    skip(!(await backend.driver.capabilities()).users, "one user only");
    const { sh, container } = await launch(backend, { user: { uid: 4321, gid: 1234 } });
    expect(container.user).toEqual({ uid: 4321, gid: 1234 });
    expect((await sh("id -u; id -g")).stdout).toBe("4321\n1234\n");
  });

  test("it sees its own processes and no others", async () => {
    await using backend = await make();
    const { sh } = await launch(backend);
    const { stdout } = await sh("cd /proc; for p in [0-9]*; do cat $p/comm 2>/dev/null; done");
    expect(stdout.trim().split("\n").length).toBeLessThan(10);
  });

  test("S0-80 S3-32 network none has loopback and nothing else", async () => {
    await using backend = await make();
    const { sh } = await launch(backend);
    const devices = (await sh("cat /proc/net/dev")).stdout
      .split("\n")
      .slice(2)
      .filter((line) => line.trim() !== "");
    expect(devices.map((line) => line.trim().split(":")[0])).toEqual(["lo"]);
    expect((await sh("cat /proc/net/fib_trie")).stdout).toContain("127.0.0.1");
    expect((await sh("cat /etc/hosts")).stdout).toMatch(/^127\.0\.0\.1\s+localhost\b/m);
  });

  test("network bridge, where it is offered, has a way out besides loopback", async ({ skip }) => {
    await using backend = await make();
    skip(!(await backend.driver.capabilities()).networks.includes("bridge"), "no bridge here");
    const { sh } = await launch(backend, { network: "bridge" });
    const routes = (await sh("cat /proc/net/route")).stdout.split("\n").slice(1);
    expect(routes.some((line) => line.split("\t")[1] === "00000000")).toBe(true);
  });

  test("S0-42 S0-43 S0-79 S3-34 mounts are there, read-only ones cannot be written", async () => {
    await using backend = await make();
    const inputs = join(backend.directory, "in:puts");
    const outputs = join(backend.directory, "outputs");
    await mkdir(inputs);
    await mkdir(outputs, { mode: 0o777 });
    await writeFile(join(inputs, "given"), "from the host\n");
    const { sh } = await launch(backend, {
      mounts: [
        { source: inputs, target: "/inputs", readOnly: true },
        { source: outputs, target: "/outputs", readOnly: false },
      ],
    });
    expect((await sh("cat /inputs/given")).stdout).toBe("from the host\n");
    const refused = await sh("echo no > /inputs/given; echo no > /inputs/new; rm /inputs/given");
    expect(refused.exitCode).not.toBe(0);
    expect(await readFile(join(inputs, "given"), "utf8")).toBe("from the host\n");
    const mounts = (await sh("cat /proc/self/mounts")).stdout.split("\n").map((line) => line.split(" "));
    const options = mounts.find(([, target]) => target === "/inputs")?.[3]?.split(",");
    expect(options).toContain("ro");
    await sh("echo yes > /outputs/made");
    expect(await readFile(join(outputs, "made"), "utf8").catch((error: Error) => error.message)).toBe(
      "yes\n",
    );
  });

  test("S0-45 the workdir is made and belongs to the sandbox's user", async () => {
    await using backend = await make();
    const { sh } = await launch(backend);
    expect((await sh("pwd; touch here && echo made")).stdout).toBe("/work\nmade\n");
  });

  test("code inside cannot replace the supervisor or reach its socket", async () => {
    await using backend = await make();
    const { sh, client } = await launch(backend);
    const tried = await sh(
      "rm -f /.aido/aido-agent /run/aido/agent.sock; echo x > /.aido/aido-agent; ls /run/aido; mv /run/aido /run/gone; kill -9 1",
    );
    expect(tried.stdout).not.toContain("agent.sock");
    expect(await client.ping(1)).toBe(1);
  });
}
