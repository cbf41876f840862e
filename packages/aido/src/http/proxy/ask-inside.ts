import { type ClientRequest, type IncomingMessage, type RequestOptions, request } from "node:http";

/** Each costs this process a look, and none of them reaches whoever waits for the answer. */
const MAX_INTERIM_ANSWERS = 64;

/** A request to a program in a sandbox, which may not keep aido busy with promises of an answer. */
export function askInside(options: RequestOptions): ClientRequest {
  const outgoing = request(options);
  let interim = 0;
  outgoing.on("information", () => {
    interim += 1;
    if (interim > MAX_INTERIM_ANSWERS)
      outgoing.destroy(new Error("It has too much to say before it answers"));
  });
  return outgoing;
}

/** What a client takes for a new protocol, or for no answer at all, is no answer to pass on. */
export function isFinal({ statusCode = 0 }: IncomingMessage): boolean {
  return statusCode >= 200 && statusCode <= 999;
}
