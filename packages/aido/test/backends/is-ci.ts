/** Where a test leaves itself out for what a machine lacks, it fails in CI instead: nothing may go missing unseen. */
export const IS_CI = process.env["CI"] === "true" || process.env["CI"] === "1";
