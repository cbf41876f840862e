// The alternative: the Docker engine used directly, through dockerode.
import { createRequire } from "node:module";

const require = createRequire(new URL("../packages/aido/package.json", import.meta.url));
const Docker = require("dockerode");
export const docker = new Docker();

/** What `docker exec` does: create, start, read to the end, inspect. */
export async function engineExec(container, argv) {
  const exec = await container.exec({ Cmd: argv, AttachStdout: true, AttachStderr: true });
  const stream = await exec.start({ hijack: true, stdin: false });
  await new Promise((resolve, reject) => {
    stream.on("end", resolve);
    stream.on("close", resolve);
    stream.on("error", reject);
    stream.resume();
  });
  const { ExitCode } = await exec.inspect();
  if (ExitCode !== 0) throw new Error(`engine exec ended with ${ExitCode}`);
}

/** The same limits and isolation as ours, so that both pay for the same container. */
export function engineContainer(extra = {}) {
  return docker.createContainer({
    Image: "aido-test:busybox",
    Cmd: ["/bin/sleep", "600"],
    User: "1000:1000",
    Labels: { "dev.aido.bench": "1" },
    ...extra,
    HostConfig: {
      NetworkMode: "none",
      Memory: 512 * 1024 * 1024,
      MemorySwap: 512 * 1024 * 1024,
      NanoCpus: 1e9,
      PidsLimit: 100,
      CapDrop: ["ALL"],
      SecurityOpt: ["no-new-privileges"],
      ...extra.HostConfig,
    },
  });
}
