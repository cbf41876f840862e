/** How many commands, prompts and tasks of jobs are at work in this process. A count that lives with what it counts cannot leak. */
export class ActiveSessions {
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /** Counts until the work is over, however it ends. */
  async during<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#count += 1;
    try {
      return await work();
    } finally {
      this.#count -= 1;
    }
  }
}
