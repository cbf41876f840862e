import { AidoError } from "@aido/sdk/protocol";
import type { HttpReply } from "../wire/http-sender.ts";
import { xmlField } from "../wire/xml-field.ts";

/** Asking again can help: the server is busy, restarting, or lost the request. */
const PASSING_STATUS = new Set([408, 425, 429, 500, 502, 503, 504]);
const PASSING_CODE = new Set([
  "SlowDown",
  "RequestTimeout",
  "InternalError",
  "ServiceUnavailable",
  "BadDigest",
]);

/** The one place that reads the server's failures. Takes the reply's body. */
export async function s3Error(reply: HttpReply, what: string): Promise<AidoError> {
  return toS3Error(reply.status, await reply.text().catch(() => ""), what);
}

export function toS3Error(status: number, xml: string, what: string): AidoError {
  const code = xmlField(xml, "Code")?.slice(0, 200) ?? (status === 404 ? "NotFound" : `HTTP ${status}`);
  const message = `${what} failed: ${code}${said(xml)}`;
  const details = { status, s3Code: code };
  if (PASSING_STATUS.has(status) || PASSING_CODE.has(code)) {
    return new AidoError("OBJECT_STORE_UNAVAILABLE", message, { hint: "Try again in a while.", details });
  }
  if (code === "NoSuchBucket") {
    return new AidoError("OBJECT_NOT_FOUND", message, { hint: "Make the bucket first.", details });
  }
  if (status >= 300 && status < 400) {
    return new AidoError("OBJECT_STORE_REFUSED", message, {
      hint: "The bucket may be of another region; set AIDO_S3_REGION. Redirects are not followed.",
      details,
    });
  }
  return new AidoError("OBJECT_STORE_REFUSED", message, {
    hint: "Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and what they are allowed to do.",
    details,
  });
}

function said(xml: string): string {
  const message = xmlField(xml, "Message")?.replace(/\p{Cc}/gu, " ");
  return message === undefined ? "" : ` (${message.slice(0, 300)})`;
}
