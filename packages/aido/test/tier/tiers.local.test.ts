import { tierSuite } from "./tier-suite.ts";

tierSuite("local", "host");
