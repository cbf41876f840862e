import { bareImageContract } from "../contract/bare-image-contract.ts";

bareImageContract({
  driver: "local",
  image: "host",
  program: (name) => [name],
  missing: ["no-such-program"],
});
