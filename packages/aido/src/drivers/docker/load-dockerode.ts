import { createRequire } from "node:module";
import type Docker from "dockerode";

/**
 * Loads dockerode without the SSH and gRPC stacks it pulls in at its top level: they are three quarters of its
 * load time, and only engines behind SSH and BuildKit sessions use them. Both modules export one function, so a
 * function that loads the real module when called stands in for each until then.
 */
export function loadDockerode(): typeof Docker {
  const require = createRequire(import.meta.url);
  const dockerode = createRequire(require.resolve("dockerode"));
  deferFunctionModule(dockerode, "./session.js");
  deferFunctionModule(createRequire(dockerode.resolve("docker-modem")), "./ssh.js");
  return require("dockerode") as typeof Docker;
}

function deferFunctionModule(require: NodeJS.Require, name: string): void {
  const path = require.resolve(name);
  if (require.cache[path] !== undefined) return;
  const standIn = {
    id: path,
    filename: path,
    loaded: true,
    children: [],
    exports: (...args: readonly unknown[]): unknown => {
      if (require.cache[path] === standIn) delete require.cache[path];
      return (require(path) as (...args: readonly unknown[]) => unknown)(...args);
    },
  } as unknown as NodeJS.Module;
  require.cache[path] = standIn;
}
