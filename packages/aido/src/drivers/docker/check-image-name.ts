import { AidoError } from "@aido/sdk/protocol";

const HOST = "(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\\[[0-9a-fA-F:]+\\])(?::[0-9]{1,5})?";
const COMPONENT = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
const NAME = new RegExp(
  `^(?:${HOST}/)?${COMPONENT}(?:/${COMPONENT})*(?::\\w[\\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$`,
);
const ID = /^sha256:[0-9a-f]{64}$/;
const MAX_CHARACTERS = 512;

/** A name becomes part of a request's path, so nothing but a name may pass: with dots and slashes it would be another request. */
export function checkImageName(image: string): void {
  if (image.length <= MAX_CHARACTERS && (NAME.test(image) || ID.test(image))) return;
  throw new AidoError("VALIDATION_ERROR", `${JSON.stringify(image.slice(0, 80))} is not an image name`, {
    hint: "Write it as name:tag, for example python:3.12-slim.",
  });
}
