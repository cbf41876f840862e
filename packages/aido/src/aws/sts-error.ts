import { AidoError } from "@aido/sdk/protocol";
import { xmlField } from "../objects/wire/xml-field.ts";

const PASSING_STATUS = new Set([408, 425, 429, 500, 502, 503, 504]);
const PASSING_CODE = new Set(["Throttling", "ThrottlingException", "RequestLimitExceeded"]);

const HINTS: Readonly<Record<string, string>> = {
  AccessDenied:
    "The trust policy of the role must allow the credentials that aido has, and these must be allowed sts:AssumeRole for it.",
  InvalidClientTokenId: "Check AWS_ACCESS_KEY_ID where aido runs.",
  SignatureDoesNotMatch: "Check AWS_SECRET_ACCESS_KEY where aido runs, and its clock.",
  ExpiredToken: "The credentials that aido itself has are over; get new ones and start it again.",
  ExpiredTokenException: "The credentials that aido itself has are over; get new ones and start it again.",
  ValidationError:
    "If it speaks of DurationSeconds, set aws.session to what the role allows; 1h always is allowed.",
  PackedPolicyTooLarge: "Name fewer services in permissions.aws.services.",
  RegionDisabledException: "Activate STS in this region for the account, or set aws.region to another.",
};

/** The one place that reads STS's failures. */
export function toStsError(status: number, xml: string, roleArn: string): AidoError {
  const code = (xmlField(xml, "Code") ?? `HTTP ${status}`).replace(/[^\w. ]/g, "").slice(0, 80);
  const said = xmlField(xml, "Message")
    ?.replace(/\p{Cc}/gu, " ")
    .slice(0, 300);
  const message = `STS gave no credentials of ${roleArn}: ${code}${said === undefined ? "" : ` (${said})`}`;
  const details = { status, awsCode: code, roleArn };
  if (PASSING_STATUS.has(status) || PASSING_CODE.has(code)) {
    return new AidoError("AWS_UNAVAILABLE", message, { hint: "Try again in a while.", details });
  }
  const hint = HINTS[code] ?? "Check the role, and what the credentials that aido has are allowed to do.";
  return new AidoError("AWS_REFUSED", message, { hint, details });
}
