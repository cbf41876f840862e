import { agentsContract } from "./agents-contract.ts";

agentsContract({ driver: "local", image: "bash" });
