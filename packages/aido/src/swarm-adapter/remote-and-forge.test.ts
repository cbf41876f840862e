import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { storyJson } from "../core/swarm/testing/task-file-text.ts";
import { toRemote } from "./git/remote.ts";
import { tokenHosts } from "./git/token-hosts.ts";
import { AdapterBed, BRANCH } from "./testing/adapter-bed.ts";
import { startForge, startGitServer } from "./testing/git-server.ts";
import { trap } from "./testing/trap.ts";

const TOKEN = "ghp_0123456789abcdefghij";
/** The servers of these tests are on this machine, which is not GitHub's. */
const HERE = { AIMI_GIT_TOKEN_HOSTS: "127.0.0.1" };
const ACCESS = { token: TOKEN, hosts: tokenHosts({}) };
const WRITE = 'echo "by $story" > "$story.txt"; echo "wrote $story"';
const PULL = "https://github.com/team/shop/pull/7";

test("S1-18 S1-72 a token opens an https origin, and is in no file, setting, message, log or environment of the agent", async () => {
  using bed = new AdapterBed([storyJson("US-001")]);
  await using server = await startGitServer(bed.bed.directory, TOKEN);
  bed.bed.git(bed.bed.origin, "config", "http.receivepack", "true");
  const script = `${WRITE}; env > agent-env.txt; env; tr '\\0' '\\n' < /proc/$$/environ; printf '%s' "$orders" > orders.txt; [ "$GREETING" = "hello, world" ] && echo greeted`;
  const { last, stdout, stderr } = await bed.run({
    env: { ...bed.agent(script), ...HERE, GITHUB_TOKEN: TOKEN, GIT_SSL_CAINFO: server.certificate },
    payload: { repoUrl: `${server.origin}/team/shop.git`, envVars: { GREETING: "hello, world" } },
  });
  expect(last.payload).toMatchObject({ status: "completed", errors: [] });
  expect(bed.atOrigin("US-001.txt")).toBe("by US-001\n");
  expect(bed.atOrigin("orders.txt")).not.toContain("hello, world");
  expect(bed.atOrigin("agent-env.txt")).toContain("GREETING=hello, world");
  for (const form of [TOKEN, Buffer.from(`x-access-token:${TOKEN}`).toString("base64")]) {
    expect(stdout).not.toContain(form);
    expect(stderr).not.toContain(form);
    const found = execFileSync("sh", ["-c", `grep -rl -- '${form}' '${bed.workspace}' || true`], {
      encoding: "utf8",
    });
    expect(found).toBe("");
  }
  expect(stdout).not.toContain("hello, world");
});

test("settings that an agent puts into the adapter's own repository are not in force where there is a token", async () => {
  using bed = new AdapterBed();
  await using server = await startGitServer(bed.bed.directory, TOKEN);
  await using proxy = await startForge(() => ({ status: 502, body: {} }));
  bed.bed.git(bed.bed.origin, "config", "http.receivepack", "true");
  const scratch = join(bed.bed.directory, "scratch");
  mkdirSync(scratch);
  const { program, isSprung } = trap(bed);
  const script = `${WRITE}; ls -d ${scratch}/aimi-git-* || exit 1
for each in ${scratch}/aimi-git-*; do
printf '[http]\n\tproxy = ${proxy.url}\n\tsslVerify = false\n[core]\n\thooksPath = ${scratch}\n[credential]\n\thelper = !${program}\n[url "${proxy.url}/"]\n\tinsteadOf = https://\n' >> "$each/config"; done
ln -s ${program} ${scratch}/pre-push; printf '[http]\n\tproxy = ${proxy.url}\n' > "$HOME/.gitconfig"`;
  const { last } = await bed.run({
    env: {
      ...bed.agent(script),
      ...HERE,
      TMPDIR: scratch,
      GITHUB_TOKEN: TOKEN,
      GIT_SSL_CAINFO: server.certificate,
    },
    payload: { repoUrl: `${server.origin}/team/shop.git` },
  });
  expect(last.payload).toMatchObject({ status: "completed", errors: [] });
  expect(bed.subjects()).toEqual(["US-001: Story US-001", "US-002: Story US-002"]);
  expect(proxy.asked).toEqual([]);
  expect(isSprung()).toBe(false);
  expect(readdirSync(scratch)).toEqual(["pre-push"]);
});

test("a wrong token fails without a question, and is not told", async () => {
  using bed = new AdapterBed([storyJson("US-001")]);
  await using server = await startGitServer(bed.bed.directory, "another-token");
  const { last, stdout, stderr } = await bed.run({
    env: { ...bed.agent(WRITE), ...HERE, GITHUB_TOKEN: TOKEN, GIT_SSL_CAINFO: server.certificate },
    payload: { repoUrl: `${server.origin}/team/shop.git` },
  });
  expect(last.payload.code).toBe("GIT_CLONE_FAILED");
  expect(stdout + stderr).not.toContain(TOKEN);
});

test("a name and password in the address are used, and written nowhere", async () => {
  using bed = new AdapterBed([storyJson("US-001")]);
  await using server = await startGitServer(bed.bed.directory, "pass-word-1");
  bed.bed.git(bed.bed.origin, "config", "http.receivepack", "true");
  const repoUrl = `${server.origin.replace("//", "//x-access-token:pass-word-1@")}/team/shop.git`;
  const env = { ...bed.agent(WRITE), GIT_SSL_CAINFO: server.certificate };
  const { last, stdout, stderr } = await bed.run({ env, payload: { repoUrl } });
  expect(last.payload.status).toBe("completed");
  expect(readFileSync(join(bed.workspace, ".git/config"), "utf8")).toContain(
    `${server.origin}/team/shop.git`,
  );
  expect(
    execFileSync("sh", ["-c", `grep -rl pass-word-1 '${bed.workspace}' || true`], { encoding: "utf8" }),
  ).toBe("");
  expect(stdout + stderr).not.toContain("pass-word-1");
});

test("addresses of GitHub by ssh are reached by https when there is a token, and no other host gets it that way", () => {
  expect(toRemote("git@github.com:team/shop.git", ACCESS)).toMatchObject({
    url: "https://github.com/team/shop.git",
    path: "team/shop",
  });
  expect(toRemote("ssh://git@github.com/team/shop", ACCESS).env["GIT_CONFIG_KEY_0"]).toBe(
    "http.https://github.com/.extraHeader",
  );
  expect(toRemote("git@github.com:team/shop.git", { ...ACCESS, token: undefined })).toMatchObject({
    url: "git@github.com:team/shop.git",
    env: {},
  });
  expect(toRemote("git@gitlab.com:team/shop.git", ACCESS)).toMatchObject({
    url: "git@gitlab.com:team/shop.git",
    env: {},
  });
  expect(toRemote("ssh://me:secret@host/x", ACCESS).url).toBe("ssh://me@host/x");
});

test("a token goes to GitHub, to the server whose API is named and to those that are named, and to nobody else", () => {
  const toldTo = (host: string, env: Record<string, string> = {}) => {
    const access = { token: TOKEN, hosts: tokenHosts(env) };
    const { env: told, isWithheld } = toRemote(`https://${host}/team/shop.git`, access);
    expect(isWithheld).toBe(Object.keys(told).length === 0);
    return !isWithheld;
  };
  expect(["github.com", "GitHub.com", "github.com:443"].map((host) => toldTo(host))).toEqual([
    true,
    true,
    true,
  ]);
  const others = ["gitlab.com", "github.com.evil.test", "evil-github.com", "api.github.com", "203.0.113.1"];
  expect(others.map((host) => toldTo(host))).toEqual([false, false, false, false, false]);
  const api = { GITHUB_API_URL: "https://git.example.com/api/v3" };
  expect(toldTo("git.example.com", api)).toBe(true);
  expect(toldTo("shop.ghe.com", { GITHUB_API_URL: "https://api.shop.ghe.com" })).toBe(true);
  expect(toldTo("gitlab.com", { ...api, AIMI_GIT_TOKEN_HOSTS: "git.test, GitLab.com" })).toBe(true);
  expect(toldTo("gitlab.com", { GITHUB_API_URL: "nonsense", AIMI_GIT_TOKEN_HOSTS: "," })).toBe(false);
  expect(toRemote("https://me:pass@gitlab.com/x", ACCESS)).toMatchObject({ isWithheld: false });
});

test("an origin that the token is not for never sees it, and the log says so", async () => {
  using bed = new AdapterBed([storyJson("US-001")]);
  await using server = await startGitServer(bed.bed.directory, TOKEN);
  const { last, stderr } = await bed.run({
    env: { ...bed.agent(WRITE), GITHUB_TOKEN: TOKEN, GIT_SSL_CAINFO: server.certificate },
    payload: { repoUrl: `${server.origin}/team/shop.git` },
  });
  expect(last.payload.code).toBe("GIT_CLONE_FAILED");
  expect(server.authorizations).toEqual([undefined]);
  expect(stderr).toContain("GITHUB_TOKEN is not sent to 127.0.0.1");
});

test("a finished branch is proposed, and the completion names the pull request", async () => {
  using bed = new AdapterBed([storyJson("US-001"), storyJson("US-002")]);
  await using forge = await startForge(({ method }) =>
    method === "GET" ? { status: 200, body: [] } : { status: 201, body: { html_url: PULL } },
  );
  const env = {
    ...bed.agent(`[ "$story" = US-002 ] && exit 1; ${WRITE}`),
    GITHUB_TOKEN: TOKEN,
    GITHUB_API_URL: forge.url,
  };
  const { last } = await bed.run({ env });
  expect(last.payload).toMatchObject({ status: "completed", prUrl: PULL });
  expect(forge.asked.map(({ method, url, authorization }) => [method, url, authorization])).toEqual([
    [
      "GET",
      `/repos/team/shop/pulls?head=team%3A${encodeURIComponent(BRANCH)}&state=open&per_page=1`,
      `Bearer ${TOKEN}`,
    ],
    ["POST", "/repos/team/shop/pulls", `Bearer ${TOKEN}`],
  ]);
  expect(forge.asked[1]?.body).toMatchObject({ head: BRANCH, base: "main", title: "feat: Sign in" });
});

test("a pull request that is open already is named instead of a second one", async () => {
  using bed = new AdapterBed([storyJson("US-001")]);
  await using forge = await startForge(() => ({ status: 200, body: [{ html_url: PULL }] }));
  const { last } = await bed.run({
    env: { ...bed.agent(WRITE), GITHUB_TOKEN: TOKEN, GITHUB_API_URL: forge.url },
  });
  expect(last.payload.prUrl).toBe(PULL);
  expect(forge.asked).toHaveLength(1);
});

test.each([
  ["refuses", { status: 403, body: { message: "Resource not accessible" } }, "403 Resource not accessible"],
  ["sends elsewhere", { status: 301, body: {}, location: "http://127.0.0.1:1/x" }, "sends elsewhere"],
  ["answers nonsense", { status: 200, body: { html_url: "javascript:x" } }, "does not list"],
  ["names no address", { status: 200, body: [{ html_url: "javascript:alert(1)" }] }, "no address"],
])("a forge that %s is told among the errors, and the worker has completed", async (_, answer, told) => {
  using bed = new AdapterBed([storyJson("US-001")]);
  await using forge = await startForge(() => answer);
  const { code, last } = await bed.run({
    env: { ...bed.agent(WRITE), GITHUB_TOKEN: TOKEN, GITHUB_API_URL: forge.url },
  });
  expect(code).toBe(0);
  expect(last.payload).toMatchObject({ status: "completed", prUrl: null });
  expect(last.payload.errors?.[0]).toContain(told);
});

test("S1-24 an agent that speaks the Agent Client Protocol does stories, and what it used is told", async () => {
  using bed = new AdapterBed([storyJson("US-001"), storyJson("US-002")]);
  const agent = join(import.meta.dirname, "../../test/agents/scripted-acp-agent.mjs");
  const env = { AIMI_AGENT: "acp", AIMI_AGENT_ARGV: JSON.stringify([process.execPath, agent]) };
  const { last, messages, steps } = await bed.run({ env });
  expect(last.payload).toMatchObject({ status: "completed", errors: [] });
  expect(steps.at(-1)).toBe("US-002 completed");
  expect(messages.at(-2)?.payload.usage).toEqual({ turns: 2, inputTokens: 24, outputTokens: 10 });
  expect(messages.find(({ payload }) => payload.status === "completed")?.payload.output).toContain(
    "You said You work in a clone",
  );
});
