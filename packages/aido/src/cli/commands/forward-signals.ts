import type { SignalName, SignalSource } from "../context.ts";

const FORWARDED: readonly SignalName[] = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"];

/**
 * Hands signals to `onSignal` while a command runs. The second SIGINT ends aido at once: the user has waited
 * long enough, and the sandbox's own deadline still holds. Returns the function that stops forwarding.
 */
export function forwardSignals(signals: SignalSource, onSignal: (signal: SignalName) => void): () => void {
  let interrupts = 0;
  const stops = FORWARDED.map((signal) =>
    signals.on(signal, () => {
      if (signal === "SIGINT") interrupts += 1;
      if (interrupts > 1) signals.die(signal);
      else onSignal(signal);
    }),
  );
  return () => {
    for (const stop of stops) stop();
  };
}
