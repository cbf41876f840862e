import { historyContract } from "./history-contract.ts";
import { historyHostileContract } from "./hostile-contract.ts";
import { historySurvivalContract } from "./survival-contract.ts";

const under = { driver: "docker", image: "aido-test:busybox" } as const;
historyContract(under);
historySurvivalContract(under);
historyHostileContract(under);
