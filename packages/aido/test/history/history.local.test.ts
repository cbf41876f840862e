import { historyContract } from "./history-contract.ts";

historyContract({ driver: "local", image: "host" });
