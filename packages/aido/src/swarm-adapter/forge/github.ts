import { AidoError } from "@aido/sdk/protocol";
import { orAborted } from "../../core/supervisor/time-limit.ts";
import type { Remote } from "../git/remote.ts";
import { firstChars, oneLine } from "../report/fit-text.ts";
import type { Forge, Proposal } from "./forge.ts";

const LIMIT_MS = 30_000;
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;
const MAX_REDIRECTS = 3;
const OWNER_AND_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})\/[A-Za-z0-9._-]{1,100}$/;

type Environment = Readonly<Record<string, string | undefined>>;
type Json = Readonly<Record<string, unknown>>;

/** The forge of this remote: GitHub's own, or the server that GITHUB_API_URL names. None without a token. */
export function openForge(remote: Remote, env: Environment): Forge | undefined {
  const token = env["GITHUB_TOKEN"];
  const api = env["GITHUB_API_URL"] || (remote.host === "github.com" ? "https://api.github.com" : undefined);
  if (!token || api === undefined || !OWNER_AND_NAME.test(remote.path)) return undefined;
  return new GitHub(api.replace(/\/+$/, ""), remote.path, token);
}

class GitHub implements Forge {
  readonly #pulls: string;
  readonly #owner: string;
  readonly #token: string;

  constructor(api: string, repository: string, token: string) {
    this.#pulls = `${api}/repos/${repository}/pulls`;
    this.#owner = repository.split("/", 1)[0] ?? "";
    this.#token = token;
  }

  async propose(proposal: Proposal, signal: AbortSignal): Promise<string> {
    const open = await this.#find(proposal, signal);
    if (open !== undefined) return open;
    const { branch, into, title, body } = proposal;
    const made = await this.#ask("POST", this.#pulls, signal, { title, head: branch, base: into, body });
    if (made.status === 201) return addressOf(made.body);
    // Somebody was faster.
    const other = made.status === 422 ? await this.#find(proposal, signal) : undefined;
    if (other !== undefined) return other;
    throw refused("make the pull request", made);
  }

  async #find({ branch }: Proposal, signal: AbortSignal): Promise<string | undefined> {
    const query = new URLSearchParams({ head: `${this.#owner}:${branch}`, state: "open", per_page: "1" });
    const answer = await this.#ask("GET", `${this.#pulls}?${query}`, signal);
    if (answer.status !== 200 || !Array.isArray(answer.body)) throw refused("list pull requests", answer);
    return answer.body.length === 0 ? undefined : addressOf(answer.body[0]);
  }

  async #ask(method: "GET" | "POST", url: string, signal: AbortSignal, body?: Json): Promise<Answer> {
    const headers = {
      accept: "application/vnd.github+json",
      authorization: `Bearer ${this.#token}`,
      "content-type": "application/json",
      "user-agent": "aimi-worker",
      "x-github-api-version": "2022-11-28",
    };
    let address = url;
    for (let count = 0; count <= MAX_REDIRECTS; count += 1) {
      const limit = AbortSignal.timeout(LIMIT_MS);
      const asked = { method, headers, redirect: "manual", signal: limit } as const;
      const sent = body === undefined ? asked : { ...asked, body: JSON.stringify(body) };
      const answer = await orAborted(fetch(address, sent), signal);
      const next = answer.headers.get("location");
      if (answer.status < 300 || answer.status >= 400 || next === null) {
        return { status: answer.status, body: await readJson(answer) };
      }
      // A renamed repository answers so. The token goes nowhere else.
      const there = new URL(next, address);
      if (there.origin !== new URL(url).origin)
        throw new AidoError("EXEC_FAILED", "The forge sends elsewhere");
      address = there.href;
    }
    throw new AidoError("EXEC_FAILED", "The forge sends from one address to another without end");
  }
}

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

async function readJson(answer: Response): Promise<unknown> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of (answer.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += part.byteLength;
    if (bytes > MAX_ANSWER_BYTES) throw new AidoError("PAYLOAD_TOO_LARGE", "The forge's answer is too long");
    parts.push(part);
  }
  try {
    return JSON.parse(Buffer.concat(parts).toString("utf8"));
  } catch {
    return undefined;
  }
}

function addressOf(pull: unknown): string {
  const url = (pull as Json | null | undefined)?.["html_url"];
  const isAddress = typeof url === "string" && url.length <= 2_000 && /^https?:\/\/[\x21-\x7e]+$/.test(url);
  if (isAddress) return url;
  throw new AidoError("EXEC_FAILED", "The forge names no address of the pull request");
}

function refused(what: string, { status, body }: Answer): AidoError {
  const { message, errors } = (body ?? {}) as Json;
  const more = Array.isArray(errors) ? errors.map((one) => (one as Json | null)?.["message"]) : [];
  const said = [message, ...more].filter((one) => typeof one === "string").join("; ");
  return new AidoError("EXEC_FAILED", `GitHub does not ${what}: ${status} ${firstChars(oneLine(said), 300)}`);
}
