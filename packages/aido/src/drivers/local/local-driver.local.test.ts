import { makeLocalBackend } from "../../../test/backends/local-backend.ts";
import { driverContract } from "../../../test/contract/driver-contract.ts";

driverContract("local", {
  make: makeLocalBackend,
  hello: ["/bin/sh", "-c", "echo hello"],
  isolates: true,
});
