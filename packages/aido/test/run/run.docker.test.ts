import { makeDockerBackend } from "../backends/docker-backend.ts";
import { runContract } from "./run-contract.ts";

runContract("Docker", { make: makeDockerBackend, image: "aido-test:python" });
