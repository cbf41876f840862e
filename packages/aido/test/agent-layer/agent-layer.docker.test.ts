import { agentLayerContract } from "./agent-layer-contract.ts";

agentLayerContract("docker", "aido-test:busybox");
