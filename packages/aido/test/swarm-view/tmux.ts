import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "vitest";

const run = promisify(execFile);
/** Of a shell without settings, as root or not. */
const PROMPT = /[#$]$/;
const WAIT = { timeout: 10_000, interval: 100 };

/** A terminal whose screen can be looked at: a shell in a tmux of its own, which goes with it. */
export class Tmux implements AsyncDisposable {
  readonly #directory: string;
  #env: NodeJS.ProcessEnv;

  private constructor(directory: string, env: NodeJS.ProcessEnv) {
    this.#directory = directory;
    this.#env = env;
  }

  static async open(cols: number, rows: number, env: Readonly<Record<string, string>> = {}): Promise<Tmux> {
    const directory = await mkdtemp(join(tmpdir(), "aido-tmux-"));
    const { PATH, HOME } = process.env;
    const tmux = new Tmux(directory, { PATH, HOME, LC_ALL: "C.UTF-8", ...env });
    try {
      const size = ["-x", String(cols), "-y", String(rows)];
      await tmux.#run("-f", "/dev/null", "new-session", "-d", ...size, "bash --norc --noprofile");
      await tmux.#run("set-option", "-g", "status", "off");
      await tmux.resize(cols, rows);
      await tmux.until((screen) => PROMPT.test(screen));
      return tmux;
    } catch (thrown) {
      await tmux[Symbol.asyncDispose]();
      throw thrown;
    }
  }

  get pidFile(): string {
    return join(this.#directory, "pid");
  }

  async type(line: string): Promise<void> {
    await this.#run("send-keys", "-l", line);
    await this.press("Enter");
  }

  async press(key: string): Promise<void> {
    await this.#run("send-keys", key);
  }

  async resize(cols: number, rows: number): Promise<void> {
    await this.#run("resize-window", "-x", String(cols), "-y", String(rows));
  }

  /** The lines on the screen, without what is empty at their ends; with `colour` the sequences of their colours too. */
  async screen(options: { colour?: boolean } = {}): Promise<string> {
    const text = await this.#run("capture-pane", "-p", ...(options.colour ? ["-e"] : []));
    return text.replace(/[ \t]+$/gm, "").trimEnd();
  }

  async until(isThere: (screen: string) => boolean, limitMs = WAIT.timeout): Promise<string> {
    let screen = "";
    await expect
      .poll(
        async () => {
          screen = await this.screen();
          return isThere(screen) ? "there" : screen;
        },
        { ...WAIT, timeout: limitMs },
      )
      .toBe("there");
    return screen;
  }

  /** What tmux knows of the terminal, as `cursor_flag`. */
  async know(...names: string[]): Promise<string[]> {
    const text = await this.#run("display-message", "-p", names.map((name) => `#{${name}}`).join("|"));
    return text.trimEnd().split("|");
  }

  /** Sends a signal to the program that wrote its id to `pidFile`. */
  async signal(name: NodeJS.Signals): Promise<void> {
    let pid = 0;
    await expect.poll(async () => (pid = await this.#pid()), WAIT).toBeGreaterThan(0);
    process.kill(pid, name);
  }

  /** Resolves when the program has heard of a first Ctrl-C: the kernel makes one of two signals that come before it looks. */
  async untilAsked(): Promise<void> {
    await expect.poll(() => existsSync(`${this.pidFile}.asked`), WAIT).toBe(true);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const pid = await this.#pid();
    if (pid > 0) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It has ended, as it should.
      }
    }
    await this.#run("kill-server").catch(() => undefined);
    await rm(this.#directory, { recursive: true, force: true });
  }

  async #pid(): Promise<number> {
    return Number(await readFile(this.pidFile, "utf8").catch(() => "0"));
  }

  async #run(...argv: string[]): Promise<string> {
    const socket = join(this.#directory, "socket");
    const { stdout } = await run("tmux", ["-u", "-S", socket, ...argv], { env: this.#env });
    return stdout;
  }
}
