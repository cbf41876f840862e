import { docker } from "../backends/docker-cli.ts";
import { agentLayerContract } from "./agent-layer-contract.ts";

agentLayerContract({
  driver: "docker",
  image: "aido-test:busybox",
  nameInEngine: async (id) => (await docker(["inspect", "--format", "{{.Name}}", id])).replace(/^\//, ""),
});
