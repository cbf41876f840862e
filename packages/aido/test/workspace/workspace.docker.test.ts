import { workspaceContract } from "./workspace-contract.ts";

workspaceContract({ driver: "docker", image: "aido-test:busybox" });
