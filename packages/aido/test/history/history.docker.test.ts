import { historyContract } from "./history-contract.ts";

historyContract({ driver: "docker", image: "aido-test:busybox" });
