import { bareImageContract } from "../contract/bare-image-contract.ts";

bareImageContract({
  driver: "docker",
  image: "aido-test:busybox",
  program: (name) => ["/bin/busybox", name],
  missing: ["git", "bash"],
});
bareImageContract({
  driver: "docker",
  image: "aido-test:static",
  program: (name) => ["/work/busybox", name],
  bring: "/work/busybox",
  missing: ["sh", "/bin/sh", "git"],
});
