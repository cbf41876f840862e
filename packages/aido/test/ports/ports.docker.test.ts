import { portsContract } from "./ports-contract.ts";

portsContract({ driver: "docker", image: "aido-test:python" });
