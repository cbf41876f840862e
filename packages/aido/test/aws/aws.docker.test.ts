import { makeDockerBackend } from "../backends/docker-backend.ts";
import { docker } from "../backends/docker-cli.ts";
import { awsSuite } from "./aws-suite.ts";

awsSuite(
  "docker",
  () => makeDockerBackend({ image: "aido-test:python" }),
  async (containerId) =>
    (await docker(["inspect", containerId])) +
    (await docker(["logs", containerId]).catch(() => "")) +
    (await docker(["top", containerId, "-eo", "pid,args"])),
);
