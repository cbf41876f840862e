import { poolContract } from "./pool-contract.ts";

poolContract({ driver: "docker", image: "aido-test:busybox" });
