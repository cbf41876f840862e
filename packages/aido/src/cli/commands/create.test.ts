import { AidoError, type CreateSandbox } from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import { fakeBackend, sandboxInfo } from "../testing/fake-backend.ts";
import { fakeContext } from "../testing/fake-context.ts";
import { create, toCreateSandbox } from "./create.ts";

const nothing = () => undefined;

test("options become the request, in aido's own units", () => {
  const options = {
    image: "alpine",
    name: "web",
    ttl: "30m",
    cpus: "0.5",
    memory: "512m",
    pids: "64",
    env: ["A=1"],
    label: ["team=a"],
    network: "bridge",
    isolation: "gvisor",
    history: true,
  };
  expect(toCreateSandbox(options, nothing)).toMatchObject({
    image: "alpine",
    name: "web",
    ttlMs: 1_800_000,
    limits: { cpus: 0.5, memoryBytes: 512 << 20, pids: 64 },
    env: { A: "1" },
    labels: { team: "a" },
    network: "bridge",
    isolation: "gvisor",
    history: true,
  });
});

test("what is not said is left to the profile", () => {
  const request = toCreateSandbox({}, nothing);
  expect(JSON.parse(JSON.stringify(request))).toEqual({ env: {}, labels: {}, limits: {} });
});

test.each([
  { isolation: "strong" },
  { network: "internet" },
  { profile: "x" },
  { pids: "0" },
  { cpus: "many" },
])("%o is refused with what can be written", (options) => {
  expect(() => toCreateSandbox(options, nothing)).toThrowError(
    expect.objectContaining({ code: "VALIDATION_ERROR", hint: expect.any(String) }),
  );
});

test.each([
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)(
  "%s while the image is fetched takes the sandbox back and exits with %i",
  async (signal, code) => {
    let asked: () => void = nothing;
    const fetching = new Promise<void>((resolve) => {
      asked = resolve;
    });
    const slow = (_request: CreateSandbox, options?: { signal?: AbortSignal }) =>
      new Promise<never>((_, reject) => {
        options?.signal?.addEventListener("abort", () => reject(new AidoError("CANCELLED", "Cancelled")));
        asked();
      });
    const context = fakeContext({ backend: fakeBackend({ sandboxes: { create: slow } }) });
    const done = create(context, {});
    await fetching;
    context.signals.send(signal);
    expect(await done).toBe(code);
    expect(context.stdout.text).toBe("");
    expect(context.signals.listening).toBe(0);
  },
);

test("the id is the only thing on stdout", async () => {
  const backend = fakeBackend({
    sandboxes: { create: async () => ({ ...sandboxInfo(), token: undefined }) },
  });
  const context = fakeContext({ backend });
  await create(context, {});
  expect(context.stdout.text).toBe("abcd1234\n");
  expect(context.stderr.text).toContain("aido shell abcd1234");
});
