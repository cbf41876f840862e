import type { StoryInfo, SwarmEvent, WorkerState } from "../../core/swarm/swarm-event.ts";
import type { StoryStatus } from "../../core/swarm/tasks/task-file.ts";

export const SCRIPT_START = new Date("2026-03-01T10:00:00Z");
const NO_USAGE = { turns: 0, inputTokens: 0, outputTokens: 0 };

/** The events of a made-up swarm; each is a second after the one before. */
export class ScriptedSwarm {
  readonly events: SwarmEvent[] = [];

  constructor(maxWorkers = 4) {
    const swarmId = "3f2a91c0-5b7d-4e21-9c3a-0d1e2f3a4b5c";
    this.events.push({ type: "swarm", at: this.#next(), swarmId, maxWorkers, isResumed: false });
  }

  get now(): Date {
    return new Date(SCRIPT_START.getTime() + this.events.length * 1000);
  }

  announce(name: string, titles: readonly string[], state: WorkerState = "pending"): this {
    const stories = titles.map(
      (title, index): StoryInfo => ({ id: storyId(index + 1), title, status: "pending" }),
    );
    this.events.push({
      type: "worker",
      at: this.#next(),
      worker: `aimi-swarm-${name}`,
      taskFile: `.aimi/tasks/2026-03-01-${name}-tasks.json`,
      branch: `feat/${name}`,
      title: `The ${name} feature`,
      state,
      stories,
      usage: NO_USAGE,
      changedFiles: [],
      startedAt: undefined,
    });
    return this;
  }

  state(
    name: string,
    state: WorkerState,
    more: { reason?: string; exitCode?: number; prUrl?: string } = {},
  ): this {
    return this.#of(name, { type: "state", state, ...more });
  }

  story(name: string, number: number, status: StoryStatus, text = ""): this {
    return this.#of(name, { type: "story", story: storyId(number), status, text });
  }

  say(name: string, text: string, type: "progress" | "log" = "progress"): this {
    return this.#of(name, { type, text });
  }

  usage(name: string, turns: number, inputTokens: number, outputTokens = 0): this {
    return this.#of(name, { type: "usage", turns, inputTokens, outputTokens });
  }

  files(name: string, ...paths: string[]): this {
    return this.#of(name, { type: "files", paths });
  }

  warn(message: string, name?: string): this {
    const worker = name === undefined ? undefined : `aimi-swarm-${name}`;
    this.events.push({ type: "warning", at: this.#next(), worker, message });
    return this;
  }

  done(isInterrupted = false): this {
    this.events.push({ type: "done", at: this.#next(), isInterrupted, results: [] });
    return this;
  }

  #of(name: string, event: object): this {
    this.events.push({ at: this.#next(), worker: `aimi-swarm-${name}`, ...event } as SwarmEvent);
    return this;
  }

  #next(): Date {
    return this.now;
  }
}

function storyId(number: number): string {
  return `US-${String(number).padStart(3, "0")}`;
}

/** A swarm in the middle of its work, with something of everything. */
export function busySwarm(): ScriptedSwarm {
  return new ScriptedSwarm()
    .announce("login", ["Sign-in form", "Password reset", "Remember me", "Two factors", "Sign out"])
    .announce("cart", ["Add to cart", "Change amounts", "Empty cart"])
    .announce("search-index", ["Tokenizer", "Index 漢字 and emoji ✅", "Query parser", "Ranking"])
    .announce("billing", ["Invoices", "Refunds"])
    .announce("profile", ["Avatar", "Biography"])
    .state("login", "creating")
    .state("cart", "creating")
    .state("search-index", "creating")
    .state("billing", "creating")
    .state("login", "running")
    .state("cart", "running")
    .state("search-index", "running")
    .state("billing", "running")
    .story("login", 1, "in_progress", "Starting")
    .say("login", "Reading src/pages/sign-in.tsx")
    .files("login", "src/routes.ts", "src/pages/sign-in.tsx")
    .story("login", 1, "completed", "Form is there")
    .story("login", 2, "in_progress", "Looking at how mail is sent")
    .say("login", "Editing src/mail/reset-template.ts")
    .say("login", "Running npm test")
    .usage("login", 14, 51_200, 10_300)
    .story("cart", 1, "in_progress")
    .say("cart", "I'll start by looking at the store. ✅ found it 🚀")
    .files("cart", "src/routes.ts", "src/cart.ts")
    .usage("cart", 3, 8_100, 900)
    .story("search-index", 1, "completed")
    .story("search-index", 2, "failed", "3 tests fail")
    .story("search-index", 3, "skipped")
    .story("search-index", 4, "in_progress")
    .say("search-index", "Ranking by\nterm frequency")
    .usage("search-index", 41, 1_182_000, 44_000)
    .story("billing", 1, "completed")
    .story("billing", 2, "completed")
    .usage("billing", 22, 120_000, 9_000)
    .state("billing", "completed", { exitCode: 0, prUrl: "https://github.com/acme/shop/pull/17" })
    .warn("ANTHROPIC_BASE_URL is not https")
    .warn("said nothing for 5 minutes", "cart");
}

const ESCAPES = [
  "\u001b[2J\u001b[H",
  "\u001b]0;owned\u0007",
  "\u001b[?1049l\u001b[?25h",
  "\u009b3A",
  "\u001b[31m",
  "\u001bc",
];

/** A worker that tries to act on the terminal with everything it can write. */
export function hostileSwarm(): ScriptedSwarm {
  const swarm = new ScriptedSwarm().announce("good", ["Honest work"]).announce("bad", ESCAPES);
  swarm.state("good", "running").state("bad", "running").story("good", 1, "in_progress", "Fine");
  for (const [index, attack] of ESCAPES.entries()) {
    swarm
      .story("bad", index + 1, "in_progress", `story ${attack}`)
      .say("bad", `said ${attack}\r${attack}`)
      .files("bad", `src/${attack}`)
      .files("good", `src/${attack}`)
      .warn(`warned ${attack}`, "bad");
  }
  return swarm;
}

export const PLAYS = { busy: busySwarm, hostile: hostileSwarm } as const;
