/** The last line of every commit that a worker makes: by it others know them. */
export const STORY_TRAILER = "Aimi-Story";
