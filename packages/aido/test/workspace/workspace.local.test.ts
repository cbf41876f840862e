import { workspaceContract } from "./workspace-contract.ts";

workspaceContract({ driver: "local", image: "bash" });
