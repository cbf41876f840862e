import type { WebSocket } from "ws";

const PING_MS = 20_000;

/**
 * Asks now and then whether the client is there, and cuts off one that does not answer. While nothing is read from it no
 * answer can be heard; then asking alone tells, because nobody takes it.
 */
export function keepAlive(socket: WebSocket, pingMs = PING_MS): () => void {
  let isAlive = true;
  let wasPaused = false;
  socket.on("pong", () => {
    isAlive = true;
  });
  const timer = setInterval(() => {
    if (!isAlive && !wasPaused && !socket.isPaused) {
      socket.terminate();
      return;
    }
    wasPaused = socket.isPaused;
    isAlive = false;
    socket.ping();
  }, pingMs);
  timer.unref();
  return () => clearInterval(timer);
}
