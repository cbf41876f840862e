import { LOCAL_MODES } from "../../../test/backends/local-backend.ts";
import { driverContract } from "../../../test/contract/driver-contract.ts";

for (const { name, make } of LOCAL_MODES) {
  driverContract(name, { make, hello: ["/bin/sh", "-c", "echo hello"], isolates: true });
}
