import { EMPTY_TREE_ID } from "./git-objects.ts";

/**
 * What git sees when aido runs it: our own bare repository and nothing else. No configuration of the machine or of a
 * user, no attributes from a tree, no prompt, no path into a sandbox.
 */
export function gitEnvironment(gitDir: string): NodeJS.ProcessEnv {
  return {
    PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    HOME: "/nonexistent",
    LC_ALL: "C",
    GIT_DIR: gitDir,
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_ATTR_NOSYSTEM: "1",
    // Later versions read attributes from HEAD's tree in a bare repository: ours come from a sandbox.
    GIT_ATTR_SOURCE: EMPTY_TREE_ID,
    GIT_TERMINAL_PROMPT: "0",
    GIT_OPTIONAL_LOCKS: "0",
    GIT_NO_REPLACE_OBJECTS: "1",
    GIT_PROTOCOL_FROM_USER: "0",
  };
}
