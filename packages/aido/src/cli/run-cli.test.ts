import type { Sandboxes } from "@aido/sdk";
import { AidoError } from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import type { GlobalOptions } from "./context.ts";
import { runCli } from "./run-cli.ts";
import {
  execInfo,
  type FakeBackendParts,
  fakeBackend,
  notFound,
  sandboxInfo,
} from "./testing/fake-backend.ts";
import { fakeContext } from "./testing/fake-context.ts";
import { FakeExec } from "./testing/fake-exec.ts";

async function cli(argv: readonly string[], parts: FakeBackendParts = {}) {
  const base = fakeContext({ backend: fakeBackend(parts) });
  const makeContext = (globals: GlobalOptions) => Promise.resolve({ ...base, globals });
  const code = await runCli(argv, { version: "1.2.3", makeContext });
  return { code, stdout: base.stdout.text, stderr: base.stderr.text };
}

test("help is on stdout with exit code 0, for the program and for a command", async () => {
  expect(await cli(["--help"])).toMatchObject({
    code: 0,
    stderr: "",
    stdout: expect.stringContaining("About aido:"),
  });
  expect(await cli(["run", "--help"])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("Examples:"),
  });
  expect(await cli(["help", "run"])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("Usage: aido run"),
  });
});

test("the version is printed wherever it is asked for", async () => {
  expect(await cli(["--verbose", "--version"])).toMatchObject({ code: 0, stdout: "1.2.3\n" });
});

test("nothing at all is a usage error that shows the help on stderr", async () => {
  expect(await cli([])).toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringContaining("About aido:"),
  });
});

test("an unknown command exits with 2 and the nearest one is suggested", async () => {
  const { code, stderr, stdout } = await cli(["inspcet", "x"]);
  expect(code).toBe(2);
  expect(stdout).toBe("");
  expect(stderr).toContain("unknown command 'inspcet'");
  expect(stderr).toContain("Did you mean inspect?");
});

test("an unknown option exits with 2 and the nearest one is suggested", async () => {
  const { code, stderr } = await cli(["sandbox", "up", "--tempalte", "python"]);
  expect(code).toBe(2);
  expect(stderr).toContain("Did you mean --template?");
});

test.each([[["exec", "web"]], [["inspect"]], [["ls", "extra"]], [["create", "--image"]]])(
  "%j is a usage error: exit code 2, also where exit codes are passed through",
  async (argv) => {
    expect(await cli(argv)).toMatchObject({ code: 2, stdout: "" });
  },
);

test("with --json a usage error is an error body on stdout", async () => {
  const { code, stdout, stderr } = await cli(["inspect", "--json"]);
  expect(code).toBe(2);
  expect(stderr).toBe("");
  expect(JSON.parse(stdout)).toMatchObject({ error: { code: "VALIDATION_ERROR" } });
});

test("a failure exits with the code of its kind", async () => {
  const get = () => Promise.reject(notFound("web"));
  const { code, stderr } = await cli(["inspect", "web"], { sandboxes: { get } });
  expect(code).toBe(4);
  expect(stderr).toBe("aido: No sandbox is called web\nhint: Type `aido ls`.\n");
});

test("where the command's exit code is passed through, aido's own failure is 125", async () => {
  const start = () => Promise.reject(notFound("web"));
  expect(await cli(["exec", "web", "true"], { execs: { start } })).toMatchObject({ code: 125 });
});

test("a stream of JSON lines ends with the error as its last line", async () => {
  const command = new FakeExec();
  command.write("stdout", "a");
  const wait = () => Promise.reject(new AidoError("CONTAINER_LOST", "gone"));
  command.end();
  const { code, stdout } = await cli(["exec", "web", "--json", "--", "x"], {
    execs: { ...command.execs, wait },
  });
  expect(code).toBe(125);
  const lines = stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(lines.at(-1)).toEqual({ type: "error", error: { code: "CONTAINER_LOST", message: "gone" } });
});

test.each([
  [
    ["exec", "web", "ls", "-la", "--json"],
    ["ls", "-la", "--json"],
  ],
  [
    ["exec", "web", "--", "ls", "-la"],
    ["ls", "-la"],
  ],
  [
    ["exec", "-e", "A=1", "web", "-u", "1000", "env", "-i"],
    ["env", "-i"],
  ],
  [
    ["exec", "--cwd=/tmp", "web", "sh", "--", "-c"],
    ["sh", "--", "-c"],
  ],
  [
    ["--data-dir", "x", "exec", "web", "echo", "--help"],
    ["echo", "--help"],
  ],
])("%j runs %j", async (argv, expected) => {
  const command = new FakeExec().end();
  const { code } = await cli(argv, { execs: command.execs });
  expect(code).toBe(0);
  expect(command.request?.argv).toEqual(expected);
});

test("global options may stand before and after the command", async () => {
  const list = () => Promise.resolve([sandboxInfo()]);
  for (const argv of [
    ["--json", "ls"],
    ["ls", "--json"],
    ["sandbox", "list", "--json"],
  ]) {
    const { stdout } = await cli(argv, { sandboxes: { list } });
    expect(JSON.parse(stdout)).toMatchObject([{ id: "abcd1234", createdAt: "2025-12-31T23:50:00.000Z" }]);
  }
});

test("--no-auto-destroy is only passed on when it is written", async () => {
  const requests: unknown[] = [];
  const up = (request: { autoDestroy?: boolean | undefined }) => {
    requests.push(request.autoDestroy);
    return Promise.reject(new AidoError("CANCELLED", "enough"));
  };
  await cli(["sandbox", "up", "--template", "bash"], { runs: { up } });
  await cli(["sandbox", "up", "--template", "bash", "--no-auto-destroy"], { runs: { up } });
  expect(requests).toEqual([undefined, false]);
});

test("aido evidence <id> shows, aido evidence verify verifies", async () => {
  const entry = { seq: 1, timestamp: "t", event: "sandbox.created", actor: "me", prev: "", hash: "h" };
  const verdict = { sandboxId: "web", entries: 1, ok: true, problems: [] };
  const get = (reference: string) => Promise.reject(notFound(reference));
  const parts = { sandboxes: { get }, evidence: { entries: [entry], verdicts: [verdict] } };
  expect((await cli(["evidence", "web"], parts)).stdout).toContain("sandbox.created");
  expect((await cli(["evidence", "verify"], parts)).stdout).toContain("ok");
  expect((await cli(["evidence", "verify", "web", "--json"], parts)).stdout).toContain('"ok": true');
  const broken = {
    ...verdict,
    ok: false,
    problems: [{ line: 2, problem: "changed" as const, message: "m" }],
  };
  const result = await cli(["evidence", "verify"], { evidence: { verdicts: [broken] } });
  expect(result).toMatchObject({ code: 5, stdout: expect.stringContaining("line 2: changed") });
});

test("S0-62 aido ui says that it is coming and what to use instead", async () => {
  const { code, stdout } = await cli(["ui"]);
  expect(code).toBe(0);
  expect(stdout).toContain("Coming soon");
  expect(stdout).toContain("aido stats --watch");
});

test("an empty list says what to type next, on stderr", async () => {
  const list = () => Promise.resolve([]);
  expect(await cli(["ls"], { sandboxes: { list } })).toMatchObject({
    code: 0,
    stdout: "",
    stderr: expect.stringContaining("aido sandbox up"),
  });
  expect((await cli(["ls", "--json"], { sandboxes: { list } })).stdout).toBe("[]\n");
});

test("names and labels cannot act on the terminal", async () => {
  const evil = "\u001b]0;owned\u0007\u001b[2J\u202e";
  const info = sandboxInfo({ name: evil, labels: { [evil]: evil }, image: evil });
  const exec = execInfo({ argv: ["echo", evil] });
  const parts = {
    sandboxes: { list: () => Promise.resolve([info]), get: () => Promise.resolve(info) },
    execs: { list: () => Promise.resolve([exec]) },
  };
  for (const argv of [
    ["ls", "--verbose"],
    ["inspect", "web"],
    ["inspect", "web", "--json"],
    ["ps", "web"],
  ]) {
    const { stdout } = await cli(argv, parts);
    expect(stdout).toContain("owned");
    for (const char of ["\u001b", "\u0007", "\u202e"]) expect(stdout).not.toContain(char);
  }
});

test("destroy goes on after a failure and reports it", async () => {
  const destroyed: string[] = [];
  const parts: FakeBackendParts = {
    sandboxes: {
      list: () =>
        Promise.resolve([sandboxInfo({ id: "one" }), sandboxInfo({ id: "bad" }), sandboxInfo({ id: "two" })]),
      destroy: (id) => {
        if (id === "bad") return Promise.reject(new AidoError("CONTAINER_REMOVAL_FAILED", "stuck"));
        destroyed.push(id);
        return Promise.resolve();
      },
    },
  };
  const { code, stdout, stderr } = await cli(["rm", "--all"], parts);
  expect(code).toBe(1);
  expect(destroyed.sort()).toEqual(["one", "two"]);
  expect(stdout).toBe("Destroyed one\nDestroyed two\n");
  expect(stderr).toContain("stuck");
});

test("a list longer than a page is shown whole", async () => {
  const all = Array.from({ length: 450 }, (_, index) => sandboxInfo({ id: `id${index}` }));
  const list: Sandboxes["list"] = ({ before, limit = 100 } = {}) => {
    const from = before === undefined ? 0 : all.findIndex(({ id }) => id === before) + 1;
    return Promise.resolve(all.slice(from, from + limit));
  };
  const { stdout } = await cli(["ls", "--quiet"], { sandboxes: { list } });
  expect(stdout).toBe(all.map(({ id }) => `${id}\n`).join(""));
});

test("S0-57 rm without a name is refused; sandbox destroy takes the newest", async () => {
  const parts: FakeBackendParts = {
    sandboxes: {
      list: (filter) => Promise.resolve([sandboxInfo({ id: `newest${filter?.limit}` })]),
      destroy: () => Promise.resolve(),
    },
  };
  expect(await cli(["rm"], parts)).toMatchObject({ code: 2, stdout: "" });
  expect(await cli(["sandbox", "destroy"], parts)).toMatchObject({ code: 0, stdout: "Destroyed newest1\n" });
});

test("--network host needs the dangerous flag", async () => {
  expect(await cli(["create", "--network", "host"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--dangerous-allow-host-network"),
  });
});
