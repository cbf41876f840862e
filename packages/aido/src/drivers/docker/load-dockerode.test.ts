import { createRequire } from "node:module";
import { expect, test } from "vitest";
import { loadDockerode } from "./load-dockerode.ts";

test("dockerode is loaded without the SSH and gRPC stacks, which load when they are used", () => {
  const require = createRequire(import.meta.url);
  const loaded = (name: string) =>
    Object.keys(require.cache).some((path) => path.includes(`/node_modules/${name}/`));
  // What other tests of this process have loaded.
  for (const path of Object.keys(require.cache)) {
    if (/\/node_modules\/(dockerode|docker-modem|ssh2|@grpc\/grpc-js)\//.test(path))
      delete require.cache[path];
  }
  const Docker = loadDockerode();
  expect(new Docker({ socketPath: "/nowhere" })).toHaveProperty("createContainer");
  expect(loaded("docker-modem")).toBe(true);
  expect(loaded("ssh2")).toBe(false);
  expect(loaded("@grpc/grpc-js")).toBe(false);
  const modem = createRequire(createRequire(require.resolve("dockerode")).resolve("docker-modem"));
  // An agent of the real module, which connects only when it is used.
  expect(modem("./ssh.js")({})).toHaveProperty("createConnection");
  expect(loaded("ssh2")).toBe(true);
});
