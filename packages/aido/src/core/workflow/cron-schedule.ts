/** When something is to happen, again and again. */
export interface CronSchedule {
  /** The first time after `date`; undefined when there is none any more. */
  next(date: Date): Date | undefined;
}

/** Reads six fields, seconds first. Raises VALIDATION_ERROR that says what is wrong with them. */
export type ReadCron = (cron: string, timezone: string) => Promise<CronSchedule>;

const FIRST_MS = 60_000;
const LONGEST_MS = 6 * 60 * 60_000;

/** How long a workflow is left alone after it has failed so many times, one after the other. */
export function backoffMs(failures: number): number {
  return Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(failures - 1, 20));
}

/** From one time to the next, as it is at `date`; Infinity when there are not two more. */
export function gapMs(schedule: CronSchedule, date: Date): number {
  const first = schedule.next(date);
  const second = first && schedule.next(first);
  return first && second ? second.getTime() - first.getTime() : Number.POSITIVE_INFINITY;
}
