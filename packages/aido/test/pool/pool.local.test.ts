import { poolContract } from "./pool-contract.ts";

poolContract({ driver: "local", image: "bash" });
