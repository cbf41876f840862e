import { SidecarClient } from "@aido/sdk";
import type { FakeProcess, FakeProgram } from "../../src/drivers/fake/fake-program.ts";
import { FAKE_PROGRAMS } from "../../src/drivers/fake/fake-program.ts";
import { ApiBed, type ApiBedOptions, type Ask, type Reply } from "./api-bed.ts";

/** The sidecar API of one sandbox on the fake driver. */
export class SidecarBed implements AsyncDisposable {
  readonly api: ApiBed;
  readonly id: string;
  readonly token: string;

  private constructor(api: ApiBed, id: string, token: string) {
    this.api = api;
    this.id = id;
    this.token = token;
  }

  static async open(options: ApiBedOptions & { request?: object } = {}): Promise<SidecarBed> {
    const api = await ApiBed.open({ ...options, programs: { sh: miniShell, ...options.programs } });
    const key = options.guarded === true ? await api.key("maker") : undefined;
    const made = await api.post("/api/sandbox", { profile: "sidecar", ...options.request }, { key });
    if (made.status !== 201) throw new Error(`no sandbox: ${made.text}`);
    return new SidecarBed(api, made.json.id, made.json.token);
  }

  /** The SDK's client, without a network in between. */
  client(token = this.token): SidecarClient {
    return new SidecarClient({
      url: `http://localhost/sidecar/${this.id}`,
      token,
      fetch: async (url, init) => await this.api.app.request(String(url), init),
    });
  }

  fetch(method: string, path: string, ask: Ask = {}): Promise<Response> {
    return this.api.fetch(method, `/sidecar/${this.id}${path}`, { key: this.token, ...ask });
  }

  call(method: string, path: string, ask: Ask = {}): Promise<Reply> {
    return this.api.call(method, `/sidecar/${this.id}${path}`, { key: this.token, ...ask });
  }

  get(path: string): Promise<Reply> {
    return this.call("GET", path);
  }

  post(path: string, body: unknown): Promise<Reply> {
    return this.call("POST", path, { body });
  }

  async terminal(body: object = {}): Promise<string> {
    const reply = await this.post("/terminals", body);
    if (reply.status !== 201) throw new Error(`no terminal: ${reply.status} ${reply.text}`);
    return reply.json.data.sessionId;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.api[Symbol.asyncDispose]();
  }
}

/** `-c` runs the fake programs, one after `;` another; on a terminal each line is such a command. */
const miniShell: FakeProgram = async (process) => {
  if (!process.pty) return await run(process, process.argv[2] ?? "");
  await process.stdout("$ ");
  let line = "";
  for await (const chunk of process.stdin) {
    await process.stdout(chunk);
    line += chunk.toString();
    for (let end = line.indexOf("\n"); end >= 0; end = line.indexOf("\n")) {
      const command = line.slice(0, end);
      line = line.slice(end + 1);
      if (command.startsWith("exit")) return Number(command.split(" ")[1] ?? 0);
      await run(process, command);
      await process.stdout("$ ");
    }
  }
  return 0;
};

async function run(process: FakeProcess, script: string): Promise<number> {
  let code = 0;
  for (const command of script.split(";")) {
    const argv = command.trim().split(/\s+/);
    const program = FAKE_PROGRAMS[argv[0] ?? ""];
    if (program === undefined) {
      await process.stderr(`sh: ${argv[0]}: not found\n`);
      code = 127;
    } else code = Number((await program({ ...process, argv })) ?? 0);
  }
  return code;
}
