import { execFileSync } from "node:child_process";
import { copyFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isAidoError } from "@aido/sdk/protocol";
import Docker from "dockerode";
import { describe, expect, test } from "vitest";
import { makeDockerBackend } from "../../../test/backends/docker-backend.ts";
import { docker, tagImage } from "../../../test/backends/docker-cli.ts";
import { specOf } from "../../../test/contract/driver-backend.ts";
import { launch } from "../../../test/contract/launch.ts";
import { LABEL } from "./labels.ts";

describe("images", () => {
  test("an image with one program and nothing else, no shell, no library, is enough", async () => {
    await using backend = await makeDockerBackend({ image: "aido-test:static" });
    const { client } = await launch(backend);
    expect(await client.exec(["/probe", "exit", "7"])).toMatchObject({
      exitCode: 7,
      stdout: "uid=1000 gid=1000 args=2\n",
    });
    await expect(client.exec(["/bin/sh"])).rejects.toThrow(/START_FAILED.*errno 2/);
  });

  test("an image with Python runs it", async () => {
    await using backend = await makeDockerBackend({ image: "aido-test:python" });
    const { client } = await launch(backend);
    expect(await client.exec(["python3", "-c", "print(6 * 7)"])).toMatchObject({
      exitCode: 0,
      stdout: "42\n",
    });
  });

  test("an image with Node runs it", async () => {
    await using backend = await makeDockerBackend({ image: "aido-test:node" });
    const { client } = await launch(backend, {
      limits: { ...specOf(backend).limits, memoryBytes: 512 * 1024 ** 2 },
    });
    expect(await client.exec(["node", "-p", "6 * 7"])).toMatchObject({ exitCode: 0, stdout: "42\n" });
  });

  test("an image is known by whatever name it has", async () => {
    await using _tag = await tagImage("aido-test:python", "python:3.12-slim");
    await using backend = await makeDockerBackend({ image: "python:3.12-slim" });
    await backend.driver.ensureImage("python:3.12-slim");
    const { container } = await launch(backend);
    expect(container.image).toBe("python:3.12-slim");
  });

  test("what an image wants to run, to check and to keep is not done; what it sets is told", async () => {
    const image = `aido-test:wishes-${process.pid}`;
    const file = `FROM aido-test:busybox
ENTRYPOINT ["/bin/false"]
CMD ["nothing"]
HEALTHCHECK --interval=1s CMD /bin/false
STOPSIGNAL SIGQUIT
VOLUME /kept
USER 4444
WORKDIR /elsewhere
ENV GREETING="good=day" EMPTY=
EXPOSE 80
`;
    await docker(["build", "-q", "-t", image, "-"], { input: file });
    const volumes = await docker(["volume", "ls", "-q"]);
    try {
      await using backend = await makeDockerBackend({ image });
      const { id, sh, container } = await launch(backend);
      expect(container.imageEnv).toMatchObject({ GREETING: "good=day", EMPTY: "" });
      expect((await sh("id -u; pwd")).stdout).toBe("1000\n/work\n");
      const [raw] = JSON.parse(await docker(["inspect", container.containerId]));
      expect(raw.State.Health).toBeUndefined();
      expect(raw.NetworkSettings.Ports).toEqual({});
      await backend.driver.stop(id, 5_000);
      expect(await backend.driver.inspect(id)).toMatchObject({ exitCode: 0 });
      await backend.driver.remove(id);
      expect(await docker(["volume", "ls", "-q"])).toBe(volumes);
    } finally {
      await docker(["rmi", image]);
    }
  });

  test("an image that is not there is named in the error", async () => {
    await using backend = await makeDockerBackend({ image: "aido-test:none" });
    const failure = await backend.driver.create(specOf(backend)).catch((error: unknown) => error);
    expect(failure).toSatisfy((error) => isAidoError(error, "IMAGE_NOT_FOUND"));
    expect(failure).toMatchObject({ message: expect.stringContaining("aido-test:none") });
  });
});

describe("containers of others", () => {
  test("a name that another container has is refused, and that container stays", async () => {
    await using backend = await makeDockerBackend();
    const spec = specOf(backend);
    await docker(["create", "--name", spec.name, "aido-test:busybox", "true"]);
    try {
      await expect(backend.driver.create(spec)).rejects.toSatisfy((error) =>
        isAidoError(error, "CONTAINER_NAME_TAKEN"),
      );
      expect(await backend.driver.list()).toEqual([]);
      await backend.driver.remove(spec.sandboxId);
      expect(await docker(["ps", "-aq", "--filter", `name=${spec.name}`])).not.toBe("");
    } finally {
      await docker(["rm", "-f", spec.name]);
    }
  });

  test("a container that carries a sandbox's label without our scope is not ours", async () => {
    await using backend = await makeDockerBackend();
    const { sandboxId, name } = specOf(backend);
    await docker([
      "create",
      "--name",
      name,
      "--label",
      `${LABEL.sandbox}=${sandboxId}`,
      "aido-test:busybox",
      "true",
    ]);
    try {
      expect(await backend.driver.inspect(sandboxId)).toBeUndefined();
      await backend.driver.remove(sandboxId);
      expect(await docker(["ps", "-aq", "--filter", `name=${name}`])).not.toBe("");
    } finally {
      await docker(["rm", "-f", name]);
    }
  });
});

describe("starts that fail", () => {
  test("a supervisor that ends at once is told with its exit code, without waiting", async () => {
    await using backend = await makeDockerBackend({ agentPath: "/bin/busybox" });
    const spec = specOf(backend);
    await backend.driver.create(spec);
    const failure = await backend.driver.start(spec.sandboxId).catch((error: unknown) => error);
    expect(failure).toSatisfy((error) => isAidoError(error, "CONTAINER_START_FAILED"));
    expect(failure).toMatchObject({ details: { exitCode: 127 } });
  });

  test("S4-13 what the engine says about a start that fails is told", async () => {
    await using backend = await makeDockerBackend();
    const agentPath = join(backend.directory, "no-program");
    await writeFile(agentPath, "not executable", { mode: 0o644 });
    await using other = await makeDockerBackend({ agentPath });
    const spec = specOf(other);
    await other.driver.create(spec);
    const failure = await other.driver.start(spec.sandboxId).catch((error: unknown) => error);
    expect(failure).toSatisfy((error) => isAidoError(error, "CONTAINER_START_FAILED"));
    expect(failure).toMatchObject({ message: expect.stringContaining("permission denied") });
  });

  test("a mount whose source is missing is an error, and nothing is made in its place", async () => {
    await using backend = await makeDockerBackend();
    const source = join(backend.directory, "missing");
    const mounts = [{ source, target: "/inputs", readOnly: true }];
    await expect(backend.driver.create(specOf(backend, { mounts }))).rejects.toSatisfy((error) =>
      isAidoError(error, "CONTAINER_CREATION_FAILED"),
    );
    await expect(stat(source)).rejects.toMatchObject({ code: "ENOENT" });
  });
});

describe("the host's side", () => {
  test("the sandbox's variables are not shown by the engine", async () => {
    await using backend = await makeDockerBackend();
    const { container } = await launch(backend, { env: { TOKEN: "s3cret-value" } });
    expect(await docker(["inspect", container.containerId])).not.toContain("s3cret-value");
  });

  test("a socket that was replaced by a link is not followed", async () => {
    await using backend = await makeDockerBackend();
    const { id, client } = await launch(backend);
    await client[Symbol.asyncDispose]();
    const socket = join(backend.options.runDir(id), "agent.sock");
    execFileSync("mv", [socket, `${socket}.real`]);
    await symlink(`${socket}.real`, socket);
    await expect(backend.driver.connect(id)).rejects.toSatisfy((error) =>
      isAidoError(error, "CONTAINER_LOST"),
    );
    execFileSync("rm", [socket]);
    await copyFile("/etc/hostname", socket);
    await expect(backend.driver.connect(id)).rejects.toSatisfy((error) =>
      isAidoError(error, "CONTAINER_LOST"),
    );
  });

  test("the directory of the socket is closed to others and gone after the removal", async () => {
    await using backend = await makeDockerBackend();
    const { id } = await launch(backend);
    const directory = backend.options.runDir(id);
    expect((await stat(directory)).mode & 0o777).toBe(0o700);
    await backend.driver.remove(id);
    await expect(stat(directory)).rejects.toMatchObject({ code: "ENOENT" });
  });

  test("S0-82 privileged is as asked and never otherwise", async () => {
    await using backend = await makeDockerBackend();
    const plain = await backend.driver.create(specOf(backend));
    const dangerous = await backend.driver.create(specOf(backend, { privileged: true }));
    const isPrivileged = (id: string) => docker(["inspect", "-f", "{{.HostConfig.Privileged}}", id]);
    expect(await isPrivileged(plain.containerId)).toBe("false");
    expect(await isPrivileged(dangerous.containerId)).toBe("true");
  });

  test("S0-80 the host's network is had when asked for", async () => {
    await using backend = await makeDockerBackend();
    const { sh } = await launch(backend, { network: "host" });
    const own = execFileSync("cat", ["/proc/net/dev"], { encoding: "utf8" }).split("\n").length;
    expect((await sh("cat /proc/net/dev")).stdout.split("\n").length).toBe(own);
  });
});

test("a second network of its name, made late for a process that was killed, harms no sandbox and goes with it", async () => {
  await using backend = await makeDockerBackend();
  const spec = specOf(backend, { network: "isolated" });
  const named = () =>
    docker(["network", "ls", "--no-trunc", "--filter", `name=${spec.name}-net`, "--format", "{{.ID}}"]);
  await backend.driver.create(spec);
  const own = await named();
  const [network] = JSON.parse(await docker(["network", "inspect", own]));
  const labels = { ...network.Labels, [LABEL.sandbox]: "sbx_of_the_dead" };
  // The engine's own command asks whether the name is taken; two requests at the same moment are both told that it is not.
  const engine = new Docker();
  await engine.createNetwork({ Name: `${spec.name}-net`, CheckDuplicate: false, Labels: labels });
  expect((await named()).split("\n")).toHaveLength(2);
  await backend.driver.start(spec.sandboxId);
  await backend.driver.stop(spec.sandboxId, 1_000);
  await backend.driver.start(spec.sandboxId);
  const [raw] = JSON.parse(await docker(["inspect", spec.name]));
  expect(raw.NetworkSettings.Networks[`${spec.name}-net`]).toMatchObject({ NetworkID: own });
  await backend.driver.remove(spec.sandboxId);
  expect(await named()).toBe("");
});

test("files in a volume of the image's making are in no commit, so it is refused", async () => {
  const name = `aido-test-volume:${process.pid}`;
  await docker(["build", "-q", "-t", name, "-"], { input: "FROM aido-test:busybox\nVOLUME /data\n" });
  await using _image = { [Symbol.asyncDispose]: async () => void (await docker(["rmi", name])) };
  await using backend = await makeDockerBackend({ image: name });
  const { id } = await launch(backend);
  await backend.driver.stop(id, 2_000);
  await expect(backend.driver.commit(id)).rejects.toMatchObject({ code: "UNSUPPORTED" });
  expect(await backend.driver.committedImages()).toEqual([]);
});
