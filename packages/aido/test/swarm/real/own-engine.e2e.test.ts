import { afterAll, beforeAll, describe } from "vitest";
import { findRunsc } from "../../backends/own-engine.ts";
import { ImagesBed } from "../images-bed.ts";
import { builtImageSuite } from "./built-image-suite.ts";
import { engineRestartSuite } from "./engine-restart-suite.ts";
import { IMAGE } from "./real-swarm.ts";
import { sysboxSuite } from "./sysbox-suite.ts";

/**
 * All that takes another engine than the machine's has one together: what its workers are made from takes longer to make
 * than most of these tests.
 */
describe("on an engine of its own", () => {
  let bed: ImagesBed;
  const config: { runtimes: Record<string, object> } = {
    // Without Sysbox itself the engine's plain runtime has its name, so that all that aido asks for is asked for.
    runtimes: { "sysbox-runc": { path: "runc" } },
  };

  /** The base from what Debian offers, with the Claude Code that is fetched for all tests. */
  beforeAll(async () => {
    const path = await findRunsc();
    // gVisor's own network stack cannot take over an interface everywhere; the container's own one always works.
    config.runtimes["runsc"] = { path, runtimeArgs: ["--network=host"] };
    bed = await ImagesBed.start(config);
    const { image } = await bed.images.ensureBase({ ground: { kind: "debian" }, claude: true });
    await bed.docker("tag", image, IMAGE);
  }, 320_000);

  afterAll(async () => {
    await bed?.[Symbol.asyncDispose]();
  });

  sysboxSuite(() => bed.engine);
  builtImageSuite(() => bed);
  engineRestartSuite(() => bed.engine, config);
});
