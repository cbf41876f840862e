import { terminalSuite } from "./terminal-suite.ts";

terminalSuite("local");
