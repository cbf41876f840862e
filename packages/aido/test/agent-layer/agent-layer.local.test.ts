import { agentLayerContract } from "./agent-layer-contract.ts";

agentLayerContract("local", "bash");
