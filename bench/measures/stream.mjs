import { engineContainer } from "../engine.mjs";
import { createSandbox, withAido } from "../product.mjs";
import { median, round, timed } from "../statistics.mjs";

const BYTES = 256 * 1024 * 1024;
const ROUNDS = 3;
const ARGV = ["/bin/dd", "if=/dev/zero", "bs=64k", `count=${BYTES / 65536}`];

/** 256 MiB of output, recorded and read, against the engine's own attach, which only reads. */
export function stream() {
  return withAido("docker", async (aido) => {
    const samples = { ours: [], theirs: [] };
    let growth = 0;
    for (let index = 0; index < ROUNDS; index++) {
      const sandbox = await createSandbox(aido, "docker", { limits: { outputBytes: 0 } });
      global.gc?.();
      const before = process.memoryUsage.rss();
      const look = () => {
        growth = Math.max(growth, process.memoryUsage.rss() - before);
      };
      const looking = setInterval(look, 20);
      samples.ours.push(await timed(() => ours(aido, sandbox.id)));
      clearInterval(looking);
      look();
      await aido.sandboxes.destroy(sandbox.id);
      samples.theirs.push(await theirs());
    }
    const ratio = median(samples.theirs) / median(samples.ours);
    const megabytesPerSecond = (ms) => round(BYTES / 1e6 / (ms / 1000), 0);
    return {
      value: megabytesPerSecond(median(samples.ours)),
      unit: "MB/s",
      baseline: megabytesPerSecond(median(samples.theirs)),
      ratio: round(ratio, 2),
      memoryGrowthMiB: round(growth / 1048576, 0),
      want: ">= the engine's attach, host memory flat (< 128 MiB more)",
      ok: ratio >= 1 && growth < 128 * 1048576,
    };
  });
}

async function ours(aido, id) {
  const exec = await aido.execs.start(id, { argv: ARGV, history: false });
  let length = 0;
  for await (const chunk of aido.execs.output(id, exec.id, { follow: true })) {
    if (chunk.stream === "stdout") length += chunk.data.length;
  }
  if (length !== BYTES) throw new Error(`got ${length} of ${BYTES} bytes`);
}

async function theirs() {
  const container = await engineContainer({
    Cmd: ["/bin/sh", "-c", `read go && exec ${ARGV.join(" ")}`],
    OpenStdin: true,
    HostConfig: { LogConfig: { Type: "none" } },
  });
  try {
    const attached = await container.attach({
      ...{ stream: true, hijack: true },
      ...{ stdin: true, stdout: true, stderr: true },
    });
    let length = 0;
    const read = new Promise((resolve, reject) => {
      attached.on("data", (chunk) => {
        length += chunk.length;
      });
      attached.on("end", resolve);
      attached.on("error", reject);
    });
    // Making and starting a container is not what is compared here.
    await container.start();
    const ms = await timed(async () => {
      attached.write("go\n");
      await read;
    });
    if (length < BYTES) throw new Error(`the engine gave ${length} of ${BYTES} bytes`);
    return ms;
  } finally {
    await container.remove({ force: true });
  }
}
