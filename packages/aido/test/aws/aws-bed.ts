import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { CreateSandbox } from "@aido/sdk/protocol";
import { StsSessions } from "../../src/aws/sts-sessions.ts";
import { AwsAccess, type AwsSettings } from "../../src/core/aws/aws-access.ts";
import { MemoryStore } from "../../src/stores/memory/memory-store.ts";
import { READ_ROLE, STS_KEYS, StsServer, WRITE_ROLE } from "../backends/sts-server.ts";
import type { DriverBackend } from "../contract/driver-backend.ts";
import { makeRunHost, type RunHost } from "../run/run-harness.ts";
import { MovingClock } from "./moving-clock.ts";

/** A GET as the SDKs send it, for a Python that has few modules. */
export const ASK = `
import os, re, socket
def ask(token, port=None):
    host, named = re.match("http://([^:]+):([0-9]+)/", os.environ["AWS_CONTAINER_CREDENTIALS_FULL_URI"]).groups() if port is None else ("127.0.0.1", port)
    with socket.create_connection((host, int(named)), timeout=20) as connection:
        said = "" if token is None else "Authorization: " + token + "\\r\\n"
        connection.sendall(("GET / HTTP/1.1\\r\\nHost: " + host + "\\r\\n" + said + "Accept: application/json\\r\\n\\r\\n").encode())
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
    head, _, body = answer.decode().partition("\\r\\n\\r\\n")
    return int(head.split(" ")[1]), body
`;

/** Prints hashes: what a sandbox prints is recorded, and secrets must be nowhere. */
export const READ_CREDENTIALS = `${ASK}
import hashlib
token = os.environ["AWS_CONTAINER_AUTHORIZATION_TOKEN"]
status, body = ask(token)
given = eval(body)
hash = lambda text: hashlib.sha256(text.encode()).hexdigest()
print(str({
    "status": status,
    "accessKeyId": given["AccessKeyId"],
    "secret": hash(given["SecretAccessKey"]),
    "token": hash(given["Token"]),
    "expiration": given["Expiration"],
    "region": os.environ["AWS_REGION"],
    "without": [ask(None)[0], ask(token[:-1])[0], ask("Bearer " + token)[0]],
    "variables": sorted(name for name in os.environ if name.startswith("AWS_")),
}).replace("'", '"'))
`;

export interface SeenCredentials {
  status: number;
  accessKeyId: string;
  secret: string;
  token: string;
  expiration: string;
  region: string;
  without: number[];
  variables: string[];
}

/** A real driver, a server that checks signatures, and time that can be made to jump. */
export async function awsBed(backend: DriverBackend, changes: Partial<AwsSettings> = {}) {
  const clock = new MovingClock();
  const sts = await StsServer.start();
  sts.now = () => clock.now();
  const store = new MemoryStore();
  const directory = join(backend.directory, `aws-${randomBytes(4).toString("hex")}`);
  const credentials = () => ({ ...STS_KEYS, sessionToken: undefined });
  const hosts: RunHost[] = [];
  const access = () => {
    const settings = { endpoint: sts.url, region: "eu-west-1", externalId: undefined, credentials };
    return new AwsAccess({
      clock,
      sessions: async () => new StsSessions(settings, clock),
      settings: {
        roles: { readonly: READ_ROLE, readwrite: WRITE_ROLE },
        allowedRoles: [],
        allowedServices: [],
        sessionMs: 3_600_000,
        region: "eu-west-1",
        hasCredentials: true,
        ...changes,
      },
    });
  };
  /** Another process each time. */
  const host = (): RunHost => {
    const { driver, image } = backend;
    const made = makeRunHost({ driver, store, directory, clock, image, aws: access() });
    hosts.push(made);
    return made;
  };
  return {
    clock,
    sts,
    store,
    directory,
    host,
    request: (more: Partial<CreateSandbox> = {}): CreateSandbox => ({
      image: backend.image,
      permissions: { aws: { role: "readonly", services: ["s3"] } },
      ...more,
    }),
    python: async (on: RunHost, id: string, program: string): Promise<string> => {
      const exec = await on.execs.start(id, { argv: ["python3", "-c", program] });
      const output = async function* (stream: "stdout" | "stderr") {
        for await (const chunk of on.execs.output(id, exec.id, { follow: true })) {
          if (chunk.stream === stream) yield chunk.data;
        }
      };
      const { exitCode } = await on.execs.wait(id, exec.id);
      if (exitCode !== 0) throw new Error(`python ended with ${exitCode}: ${await text(output("stderr"))}`);
      return await text(output("stdout"));
    },
    async [Symbol.asyncDispose]() {
      for (const each of hosts) await each.close();
      for (const { sandboxId } of await backend.driver.list()) await backend.driver.remove(sandboxId);
      await sts[Symbol.asyncDispose]();
    },
  };
}
