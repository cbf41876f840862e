import { expect, test } from "vitest";
import { makeDockerBackend } from "../backends/docker-backend.ts";
import { findRunsc, OwnEngine } from "../backends/own-engine.ts";
import { awsBed } from "./aws-bed.ts";

test("on gVisor, where the supervisor is reached another way, any program that can ask over HTTP gets the credentials", async () => {
  const path = await findRunsc();
  await using engine = await OwnEngine.start({
    runtimes: { runsc: { path, runtimeArgs: ["--network=none"] } },
  });
  await engine.addImage("busybox");
  await using backend = await makeDockerBackend({ host: engine.host });
  await using bed = await awsBed(backend);
  const on = bed.host();
  const { id } = await on.sandboxes.create(bed.request({ isolation: "gvisor" }));
  const sh = async (script: string) => {
    const exec = await on.execs.start(id, { argv: ["/bin/sh", "-c", script] });
    await on.execs.wait(id, exec.id);
    const chunks: Uint8Array[] = [];
    for await (const chunk of on.execs.output(id, exec.id)) chunks.push(chunk.data);
    return Buffer.concat(chunks).toString();
  };
  const ask = (token: string) =>
    sh(
      `wget -q -O - --header "Authorization: ${token}" "$AWS_CONTAINER_CREDENTIALS_FULL_URI" || echo refused`,
    );
  const given = JSON.parse(await ask("$AWS_CONTAINER_AUTHORIZATION_TOKEN")) as Record<string, string>;
  expect(given).toMatchObject({
    AccessKeyId: bed.sts.calls[0]?.issued.accessKeyId,
    SecretAccessKey: bed.sts.calls[0]?.issued.secretAccessKey,
  });
  expect(await ask("guess")).toContain("refused");
  expect(await sh("dmesg 2>/dev/null | head -1")).toContain("gVisor");
});
