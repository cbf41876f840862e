/** Why the worker ends before its stories do, though nothing is wrong with it. */
export class Stopped extends Error {
  readonly why: "signal" | "budget";

  constructor(why: Stopped["why"], message: string) {
    super(message);
    this.why = why;
  }
}
