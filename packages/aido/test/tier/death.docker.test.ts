import { deathSuite } from "./death-suite.ts";

deathSuite("docker", "aido-test:busybox", { onS3: true });
