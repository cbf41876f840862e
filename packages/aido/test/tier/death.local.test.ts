import { deathSuite } from "./death-suite.ts";

deathSuite("local", "host", { onS3: true });
deathSuite("local", "host", { rows: "objects" });
