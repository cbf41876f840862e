import { mishapSuite } from "./mishap-suite.ts";

mishapSuite("local", "host");
