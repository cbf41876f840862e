import { restartSuite } from "./restart-suite.ts";

restartSuite("docker");
