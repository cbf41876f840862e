import { terminalSuite } from "./terminal-suite.ts";

terminalSuite("docker");
