export const STORY_STATUSES = ["pending", "in_progress", "completed", "failed", "skipped"] as const;
export type StoryStatus = (typeof STORY_STATUSES)[number];

export const TASK_TYPES = ["feat", "ref", "bug", "chore"] as const;
export type TaskType = (typeof TASK_TYPES)[number];

export interface Story {
  readonly id: string;
  readonly title: string;
  readonly description: string;
  readonly acceptanceCriteria: readonly string[];
  /** Lower comes first; no two are equal. */
  readonly priority: number;
  readonly status: StoryStatus;
  readonly dependsOn: readonly string[];
  readonly notes: string | undefined;
}

export interface TaskFile {
  /** As it was named by whoever asked for it. */
  readonly path: string;
  /** What was read, to the byte: changes are made in it, and a file that differs from it was changed by another. */
  readonly text: string;
  readonly metadata: {
    readonly title: string;
    readonly type: TaskType;
    readonly branchName: string;
    readonly createdAt: string;
    readonly planPath: string | undefined;
    readonly brainstormPath: string | undefined;
    readonly maxConcurrency: number;
  };
  /** In the order of the file. */
  readonly stories: readonly Story[];
}

/** What a story becomes. Without `notes` those it has stay. */
export interface StoryChange {
  readonly id: string;
  readonly status: StoryStatus;
  readonly notes?: string;
}

export const DEFAULT_CONCURRENCY = 4;
/** A story's id; the trailing letter is for stories that were split. */
export const STORY_ID = /^US-[0-9]{3}[a-z]?$/;
