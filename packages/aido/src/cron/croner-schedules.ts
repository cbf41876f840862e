import { AidoError } from "@aido/sdk/protocol";
import { Cron } from "croner";
import type { CronSchedule } from "../core/workflow/cron-schedule.ts";

const FIELDS = "second minute hour day-of-month month day-of-week";

/** As core asks for it. The library only works out times here; it waits for nothing and starts nothing. */
export function readCron(cron: string, timezone: string): CronSchedule {
  const expression = cron.trim();
  const shown = JSON.stringify(expression.slice(0, 100));
  const count = expression === "" ? 0 : expression.split(/\s+/).length;
  if (count !== 6) {
    throw invalid(`The schedule ${shown} has ${count} ${count === 1 ? "field" : "fields"}, not six`);
  }
  if (!isTimezone(timezone)) {
    const name = JSON.stringify(timezone.slice(0, 64));
    throw invalid(`There is no time zone ${name}`, 'Name it as in "Europe/Berlin" or "UTC".');
  }
  let pattern: Cron;
  try {
    pattern = new Cron(expression, { timezone, mode: "6-part", paused: true });
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message.replace(/^CronPattern: /, "") : "not understood";
    throw invalid(`The schedule ${shown} is wrong: ${reason}`);
  }
  return { next: (date) => pattern.nextRun(date) ?? undefined };
}

function isTimezone(timezone: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: timezone });
    return timezone !== "";
  } catch {
    return false;
  }
}

function invalid(
  message: string,
  hint = `Six fields: ${FIELDS}; "0 30 3 * * *" is every day at 03:30.`,
): AidoError {
  return new AidoError("VALIDATION_ERROR", message, { hint, details: { field: "triggerConfig" } });
}
