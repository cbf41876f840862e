import { makeDockerBackend } from "../../../test/backends/docker-backend.ts";
import { driverContract } from "../../../test/contract/driver-contract.ts";

driverContract("docker", {
  make: makeDockerBackend,
  hello: ["/bin/echo", "hello"],
  isolates: true,
});
