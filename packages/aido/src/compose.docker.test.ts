import { expect, test } from "vitest";
import { docker } from "../test/backends/docker-cli.ts";
import { aidoContract, openPlace, output } from "../test/contract/aido-contract.ts";

aidoContract({ driver: "docker", image: "aido-test:busybox" });

test("what an image sets is seen by every exec, beneath what the sandbox and the exec set", async () => {
  const image = `aido-test:env-${process.pid}`;
  const file = `FROM aido-test:busybox
ENV PATH=/opt/tools:/bin HOME=/root GREETING="good=day" ONE=image TWO=image
`;
  await docker(["build", "-q", "-t", image, "-"], { input: file });
  try {
    await using place = openPlace({ driver: "docker", image });
    const aido = await place.open();
    const { id } = await aido.sandboxes.create({ env: { ONE: "sandbox", TWO: "sandbox" }, ttlMs: 60_000 });
    const argv = ["sh", "-c", 'echo "$PATH $HOME $GREETING $ONE $TWO"'];
    expect(await output(aido, id, argv, { TWO: "exec" })).toBe(
      "/opt/tools:/bin /root good=day sandbox exec\n",
    );
  } finally {
    await docker(["rmi", image]);
  }
});
