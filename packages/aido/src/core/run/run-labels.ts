/** Marks sandboxes made for runs: PREPARING until inputs and image are there, then READY for good. */
export const RUN_LABEL = "dev.aido.front";
export const PREPARING = "run-preparing";
export const READY = "run";
/** The spec's name; several sandboxes may share it. */
export const SPEC_LABEL = "dev.aido.spec";
/** `active` from before a run's first effect until all of it is recorded. */
export const RUN_STATE_LABEL = "dev.aido.run";
export const RUN_ACTIVE = { [RUN_STATE_LABEL]: "active" } as const;
/** `yes` for sandboxes that no later task is put into. */
export const IMPLICIT_LABEL = "dev.aido.implicit";
