import { jobsSuite } from "./jobs-suite.ts";

jobsSuite("local");
