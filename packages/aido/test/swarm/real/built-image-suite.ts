import { expect, test } from "vitest";
import type { ImagesBed } from "../images-bed.ts";
import { RealSwarm, twoStories } from "./real-swarm.ts";
import type { Asked, Step } from "./scripted-model.ts";

const SHOP = { name: "shop", version: "1.0.0", dependencies: { dep: "file:dep" } };
const PACKAGES = { "": SHOP, dep: { version: "1.0.0" }, "node_modules/dep": { resolved: "dep", link: true } };
const LOCK = { name: "shop", version: "1.0.0", lockfileVersion: 3, requires: true, packages: PACKAGES };
/** Works with what the image brought: the project's source and its packages. */
const AGENT = `story=$(grep -o '^US-[0-9]*' | head -n 1)
node -p 'require("dep")' > "$story.txt" && dmesg -S 2>/dev/null | head -n 1 > kernel.txt; echo "wrote $story"`;
const FILES = {
  "agent.sh": AGENT,
  "package.json": JSON.stringify(SHOP),
  "package-lock.json": JSON.stringify(LOCK),
  "dep/package.json": '{"name":"dep","version":"1.0.0","main":"index.js"}',
  "dep/index.js": "module.exports = 'from npm';\n",
  ".gitignore": "node_modules\n",
};
const COMMAND = ["--agent", "command", "--", "sh", "/workspace/agent.sh"];

/** The same work, by Claude Code. */
function work({ story, step }: Asked): Step {
  if (step > 0) return { text: `wrote ${story}` };
  return { tool: "Bash", input: { command: `echo ${story} | sh agent.sh`, description: "Write" } };
}

/** On an engine that has the base, and nothing of a project. */
export function builtImageSuite(bed: () => ImagesBed): void {
  test.each([
    ["S1-1 S1-9 in plain containers", "container", "runc", COMMAND],
    ["S1-3 S1-18 S1-24 with Claude Code", "container", "runc", []],
    ["on gVisor's kernel", "gvisor", "runsc", COMMAND],
  ])(
    "%s: `aido swarm` makes the project's image, works in it, and the branch is at origin",
    {
      timeout: 240_000,
    },
    async (_, isolation, runtime, agent) => {
      await using swarm = await RealSwarm.make({
        tasks: { cart: twoStories() },
        files: FILES,
        host: bed().engine.host,
        script: work,
        env: { XDG_CACHE_HOME: bed().env["XDG_CACHE_HOME"] ?? "" },
      });
      const env = ["--env", "GIT_SSL_NO_VERIFY"];
      const { code, stdout, stderr } = await swarm.aido("swarm", "--isolation", isolation, ...env, ...agent);
      expect([code, swarm.statuses("cart")], stdout + stderr).toEqual([0, ["completed"]]);
      expect(swarm.storiesAtOrigin("cart")).toEqual({ "US-001": "completed", "US-002": "completed" });
      expect(swarm.subjects("cart")).toEqual(["US-001: Story US-001", "US-002: Story US-002"]);
      expect(swarm.atOrigin("cart", "US-002.txt")).toBe("from npm\n");
      expect(swarm.atOrigin("cart", "kernel.txt").includes("gVisor")).toBe(isolation === "gvisor");
      expect(swarm.entry("cart")?.prUrl).toBe("https://forge.test/team/shop/pull/cart");
      expect(swarm.model.asked.length > 0).toBe(agent.length === 0);
      const format = "{{.Config.Image}} {{.HostConfig.Runtime}}";
      const known = await swarm.docker("inspect", "--format", format, swarm.worker("cart"));
      expect(known).toBe(`aimi-sandbox-shop:latest ${runtime}`);
    },
  );
}
