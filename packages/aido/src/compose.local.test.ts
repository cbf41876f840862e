import { aidoContract } from "../test/contract/aido-contract.ts";

aidoContract({ driver: "local", image: "bash" });
