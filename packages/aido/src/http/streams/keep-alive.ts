import type { WebSocket } from "ws";

const PING_MS = 20_000;
/** More than one: after a stop of this process its timer comes before the answers that have long been there. */
const UNANSWERED = 2;

/**
 * Asks now and then whether the client is there, and cuts off one that does not answer. While nothing is read from it no
 * answer can be heard; then asking alone tells, because nobody takes it.
 */
export function keepAlive(socket: WebSocket, pingMs = PING_MS): () => void {
  let unanswered = 0;
  socket.on("pong", () => {
    unanswered = 0;
  });
  const timer = setInterval(() => {
    if (socket.isPaused) unanswered = 0;
    if (unanswered === UNANSWERED) {
      socket.terminate();
      return;
    }
    unanswered += 1;
    socket.ping();
  }, pingMs);
  timer.unref();
  return () => clearInterval(timer);
}
