import { sshContract } from "./ssh-contract.ts";

sshContract({ driver: "docker", image: "aido-test:python" });
