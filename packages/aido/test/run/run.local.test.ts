import { makeLocalBackend } from "../backends/local-backend.ts";
import { runContract } from "./run-contract.ts";

runContract("the local driver", { make: makeLocalBackend, image: "host" });
