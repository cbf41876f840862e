import { AidoError } from "@aido/sdk/protocol";

export function parseNumber(
  text: string,
  option: string,
  range: { least: number; most: number; whole?: boolean },
): number {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  const fits = value >= range.least && value <= range.most && (!range.whole || Number.isInteger(value));
  if (!fits) {
    throw new AidoError("VALIDATION_ERROR", `${option} cannot be "${text}"`, {
      hint: `Write a ${range.whole ? "whole " : ""}number from ${range.least} to ${range.most}.`,
      details: { option, value: text },
    });
  }
  return value;
}
