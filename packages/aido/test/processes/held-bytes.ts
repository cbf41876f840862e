import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Of buffers that somebody still holds: what waits to be collected says more about the machine than about the program. */
export function heldBytes(): number {
  collect();
  return process.memoryUsage().arrayBuffers;
}
