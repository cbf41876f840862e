import { MAX_MESSAGE_BYTES, type SwarmMessage, UNKNOWN_CONTAINER_ID, UNKNOWN_SWARM_ID } from "./message.ts";
import { messageError } from "./message-error.ts";
import { isRecord, PAYLOADS } from "./payload-rules.ts";

const TIMESTAMP = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:?\d{2})$/;
const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;
const CONTAINER_ID = /^[0-9a-f]{12,64}$/;

/** One line, without its newline, as a message by all rules. Anything else is an error that names the field. */
export function parseMessage(line: string | Uint8Array): SwarmMessage {
  const value = parseLine(line);
  if (!isRecord(value)) throw messageError("(line)", "is not a JSON object");
  const type = envelopeText(value, "type");
  if (!isType(type)) throw messageError("type", `is not one of ${Object.keys(PAYLOADS).join(", ")}`);
  const timestamp = envelopeText(value, "timestamp");
  if (!TIMESTAMP.test(timestamp) || Number.isNaN(Date.parse(timestamp))) {
    throw messageError("timestamp", "is not an ISO 8601 time with its zone");
  }
  const swarmId = envelopeText(value, "swarmId");
  if (!UUID_V4.test(swarmId) && swarmId !== UNKNOWN_SWARM_ID)
    throw messageError("swarmId", "is not a UUID v4");
  const containerId = envelopeText(value, "containerId");
  if (!CONTAINER_ID.test(containerId) && containerId !== UNKNOWN_CONTAINER_ID) {
    throw messageError("containerId", "is not the id of a container");
  }
  const payload = value["payload"];
  if (!isRecord(payload))
    throw messageError("payload", payload === undefined ? "is missing" : "is not an object");
  return { type, timestamp, swarmId, containerId, payload: PAYLOADS[type](payload) } as SwarmMessage;
}

/** The message as a line with its newline, checked as its reader will. */
export function formatMessage(message: SwarmMessage): string {
  const line = JSON.stringify(message);
  parseMessage(line);
  return `${line}\n`;
}

function parseLine(line: string | Uint8Array): unknown {
  const bytes = typeof line === "string" ? Buffer.byteLength(line) : line.byteLength;
  if (bytes > MAX_MESSAGE_BYTES) throw messageError("(line)", `has more than ${MAX_MESSAGE_BYTES} bytes`);
  try {
    const text = typeof line === "string" ? line : new TextDecoder("utf-8", { fatal: true }).decode(line);
    return JSON.parse(text);
  } catch {
    throw messageError("(line)", "is not JSON in UTF-8");
  }
}

function envelopeText(value: Readonly<Record<string, unknown>>, field: string): string {
  const found = Object.hasOwn(value, field) ? value[field] : undefined;
  if (typeof found === "string") return found;
  throw messageError(field, found === undefined ? "is missing" : "is not a text");
}

function isType(type: string): type is SwarmMessage["type"] {
  return Object.hasOwn(PAYLOADS, type);
}
