export type FileType = "file" | "directory" | "symlink" | "other";

export interface FileInfo {
  /** Relative to the listed directory for lists; as asked for stat. */
  path: string;
  type: FileType;
  size: number;
  mode: number;
  uid: number;
  gid: number;
  modifiedAt: Date;
  /** Where a symbolic link points, as written in it. */
  target: string | undefined;
}

export interface FileEvent {
  type: "created" | "modified" | "removed" | "overflow";
  path: string;
}
