import type { WebSocket } from "ws";

const PING_MS = 20_000;

/** Asks now and then whether the client is there, and cuts off one that does not answer. */
export function keepAlive(socket: WebSocket, pingMs = PING_MS): () => void {
  let isAlive = true;
  socket.on("pong", () => {
    isAlive = true;
  });
  const timer = setInterval(() => {
    if (!isAlive) {
      socket.terminate();
      return;
    }
    isAlive = false;
    socket.ping();
  }, pingMs);
  timer.unref();
  return () => clearInterval(timer);
}
