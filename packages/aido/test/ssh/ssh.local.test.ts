import { sshContract } from "./ssh-contract.ts";

sshContract({ driver: "local", image: "bash" });
