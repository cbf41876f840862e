import { agentLayerContract } from "./agent-layer-contract.ts";

agentLayerContract({ driver: "local", image: "bash" });
