import { aidoContract } from "../test/contract/aido-contract.ts";

aidoContract({ driver: "docker", image: "aido-test:busybox" });
