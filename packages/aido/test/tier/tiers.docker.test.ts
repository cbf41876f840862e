import { tierSuite } from "./tier-suite.ts";

tierSuite("docker", "aido-test:busybox");
