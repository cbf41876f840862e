import { sidecarSuite } from "./sidecar-suite.ts";

sidecarSuite("docker");
