import { portsContract } from "./ports-contract.ts";

portsContract({ driver: "local", image: "bash" });
