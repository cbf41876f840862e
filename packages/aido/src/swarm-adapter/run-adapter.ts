import { toAidoError } from "@aido/sdk/protocol";
import type { Clock } from "../core/clock.ts";
import { type AdapterOptions, readAdapterEnvironment } from "../core/swarm/messages/adapter-environment.ts";
import { LocalProcess } from "./agent/local-process.ts";
import { toRemote } from "./git/remote.ts";
import { tokenHosts } from "./git/token-hosts.ts";
import { type Environment, WorkerGit } from "./git/worker-git.ts";
import { readRequest } from "./read-request.ts";
import { plainText } from "./report/fit-text.ts";
import { Reporter } from "./report/reporter.ts";
import { Scrubber } from "./report/scrubber.ts";
import { Stopped } from "./stopped.ts";
import { Worker } from "./worker.ts";
import { toFailure, WorkerFailure } from "./worker-failure.ts";

const WORKSPACE = "/workspace";
/** Values of variables of such names are secrets. */
const SECRET_NAME = /TOKEN|KEY|SECRET|PASS|CREDENTIAL|AUTH/i;
const NO_SECRET = /^(SSH_AUTH_SOCK|GIT_AUTHOR_\w+)$/;
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const EXIT = { completed: 0, failed: 1, stopped: 130 } as const;

export interface AdapterIo {
  readonly env: Environment;
  readonly input: string | undefined;
  readonly stdin: AsyncIterable<Uint8Array>;
  readonly write: (line: string) => Promise<void>;
  readonly log: (line: string) => void;
  readonly clock: Clock;
  /** Aborted with Stopped when the worker shall end. */
  readonly signal: AbortSignal;
  /** Aborted when there is no time for an orderly end: with Stopped, or with what broke. */
  readonly abandon: AbortSignal;
}

/** What tells, and what keeps it from telling too much. */
interface Voice {
  readonly reporter: Reporter;
  readonly scrubber: Scrubber;
  readonly log: (line: string) => void;
}

/** From the request to the last message; gives the exit code. Whatever happens, there is exactly one last message. */
export async function runAdapter(io: AdapterIo): Promise<number> {
  const scrubber = new Scrubber();
  const secrets = Object.entries(io.env).filter(([name]) => SECRET_NAME.test(name) && !NO_SECRET.test(name));
  scrubber.add(...secrets.map(([, value]) => value));
  const reporter = new Reporter({ write: io.write, clock: io.clock, scrubber, env: io.env });
  const voice = { reporter, scrubber, log: (line: string) => io.log(scrubber.scrub(plainText(line))) };
  const stop = new AbortController();
  const onSignal = () => stop.abort(io.signal.reason);
  if (io.signal.aborted) onSignal();
  io.signal.addEventListener("abort", onSignal, { once: true });
  const abandoned = new Promise<number>((resolve) => {
    const onAbandon = () => {
      LocalProcess.killAll();
      resolve(tellEnd(io.abandon.reason, voice, []));
    };
    io.abandon.addEventListener("abort", onAbandon, { once: true });
  });
  return await Promise.race([work(io, voice, stop), abandoned]);
}

async function work(io: AdapterIo, voice: Voice, stop: AbortController): Promise<number> {
  const { env, clock } = io;
  const { reporter, scrubber } = voice;
  const done = new AbortController();
  let worker: Worker | undefined;
  let git: WorkerGit | undefined;
  try {
    const request = await readRequest({ ...io, signal: stop.signal });
    reporter.identify(request);
    const { payload } = request;
    scrubber.add(...Object.values(payload.envVars));
    const options = readAdapterEnvironment(env);
    if (options.agent === "claude" && !(env["ANTHROPIC_API_KEY"] || payload.envVars["ANTHROPIC_API_KEY"])) {
      throw new WorkerFailure("MISSING_ENV_VAR", "ANTHROPIC_API_KEY is not set");
    }
    const token = env["GITHUB_TOKEN"] || undefined;
    const remote = toRemote(payload.repoUrl, { token, hosts: tokenHosts(env) });
    scrubber.add(...remote.secrets);
    if (remote.isWithheld) voice.log(withheld(remote.host));
    limitTime(options, clock, done.signal, (reason) => stop.abort(reason));
    git = await WorkerGit.open(env["AIMI_WORKSPACE"] || WORKSPACE, env);
    worker = new Worker({
      ...voice,
      request: payload,
      options,
      env,
      git,
      remote,
      clock,
      stop: (reason) => stop.abort(reason),
      signal: stop.signal,
    });
    await worker.run();
    return await conclude(worker, reporter, stop.signal);
  } catch (thrown) {
    const cause: unknown = stop.signal.aborted ? stop.signal.reason : thrown;
    const unpushed = await worker?.push().then(() => undefined, messageOf);
    const more = unpushed === undefined ? [] : [`The branch is not pushed: ${unpushed}`];
    return await tellEnd(cause, voice, [...more, ...(worker?.errors ?? [])]);
  } finally {
    done.abort();
    await git?.close().catch(() => undefined);
  }
}

const withheld = (host: string) =>
  `GITHUB_TOKEN is not sent to ${host}, which is neither GitHub nor the host of GITHUB_API_URL; AIMI_GIT_TOKEN_HOSTS can name it`;

function limitTime(
  { maxSeconds }: AdapterOptions,
  clock: Clock,
  done: AbortSignal,
  stop: (reason: Stopped) => void,
): void {
  if (maxSeconds === undefined) return;
  const message = `The worker's budget of ${maxSeconds} seconds is used up (AIMI_MAX_SECONDS)`;
  clock.sleep(Math.min(maxSeconds * 1_000, LONGEST_TIMER_MS), done).then(
    () => stop(new Stopped("budget", message)),
    () => undefined,
  );
}

/** All stories were gone through: the branch goes to origin, and is proposed. */
async function conclude(worker: Worker, reporter: Reporter, signal: AbortSignal): Promise<number> {
  try {
    await worker.push();
  } catch (thrown) {
    signal.throwIfAborted();
    const problem = `The branch is not pushed, and its work is in the container alone: ${messageOf(thrown)}`;
    await reporter.complete("failed", undefined, [problem, ...worker.errors]);
    return EXIT.failed;
  }
  let prUrl: string | undefined;
  const errors = [...worker.errors];
  try {
    prUrl = await worker.propose();
  } catch (thrown) {
    signal.throwIfAborted();
    errors.unshift(`There is no pull request: ${messageOf(thrown)}`);
  }
  await reporter.complete("completed", prUrl, errors);
  return EXIT.completed;
}

/** Not all stories were gone through. */
async function tellEnd(cause: unknown, { reporter, log }: Voice, errors: readonly string[]): Promise<number> {
  if (cause instanceof Stopped) {
    await reporter.complete("stopped", undefined, [cause.message, ...errors]);
    return EXIT.stopped;
  }
  const failure = toFailure(cause);
  log(`acp-adapter: ${failure.stack ?? failure.message}`);
  await reporter.fail(failure.code, [failure.message, ...errors].join("; "));
  return EXIT.failed;
}

function messageOf(thrown: unknown): string {
  return toAidoError(thrown).message;
}
