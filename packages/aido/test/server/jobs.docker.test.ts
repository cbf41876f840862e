import { jobsSuite } from "./jobs-suite.ts";

jobsSuite("docker");
