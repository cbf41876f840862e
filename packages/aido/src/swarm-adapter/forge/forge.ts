/** Where branches are proposed to be merged. */
export interface Forge {
  /** The address of the branch's pull request: the one that is open already, else a new one. */
  propose(proposal: Proposal, signal: AbortSignal): Promise<string>;
}

export interface Proposal {
  readonly branch: string;
  readonly into: string;
  readonly title: string;
  readonly body: string;
}
