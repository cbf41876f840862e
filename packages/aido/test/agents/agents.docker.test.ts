import { agentsContract } from "./agents-contract.ts";

agentsContract({ driver: "docker", image: "aido-test:node" });
