/** What an archive says of one entry. Nothing of it is trusted: names are checked where they are used. */
export interface TarEntry {
  name: string;
  /** False when its name or target is not UTF-8, so that the text here is not what the archive says. */
  isText: boolean;
  type: "file" | "directory" | "symlink" | "hardlink" | "other";
  size: number;
  mode: number;
  modifiedAt: Date;
  target: string;
  /** The file's content; what is not read is passed over. */
  body: AsyncIterable<Uint8Array>;
}

export const TAR_BLOCK = 512;
