import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { type Processor, seccompFilter } from "./seccomp-filter.ts";
import { EXAMINED_SYSCALLS, REFUSED_SYSCALLS } from "./seccomp-syscalls.ts";

const ALLOWED = "allowed";
const KILLED = "killed";
const ARCHITECTURES = { x64: 0xc000003e, arm64: 0xc00000b7 } as const;
const HEADER = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h";

interface Call {
  number: number;
  arguments?: readonly number[];
  architecture?: number;
}

test.each(["x64", "arm64"] as const)(
  "on %s what is listed is refused and the rest is let through",
  (processor) => {
    for (const numbers of Object.values(REFUSED_SYSCALLS)) {
      const number = numbers[processor];
      if (number !== undefined) expect(run(processor, { number })).toBe("errno 1");
    }
    const refused = new Set<number | undefined>([
      ...Object.values(REFUSED_SYSCALLS).map((numbers) => numbers[processor]),
      ...Object.values(EXAMINED_SYSCALLS).map((numbers) => numbers[processor]),
    ]);
    const others = Array.from({ length: 460 }, (_, number) => number).filter(
      (number) => !refused.has(number),
    );
    for (const number of others) expect(run(processor, { number })).toBe(ALLOWED);
  },
);

test.each(["x64", "arm64"] as const)("on %s arguments are looked at where they matter", (processor) => {
  const call = (name: keyof typeof EXAMINED_SYSCALLS, ...values: number[]) =>
    run(processor, { number: EXAMINED_SYSCALLS[name][processor], arguments: values });
  const SIGCHLD = 17;
  expect(call("clone", SIGCHLD)).toBe(ALLOWED);
  expect(call("clone", 0x3d0f00)).toBe(ALLOWED); // a thread
  for (const flag of [0x10000000, 0x20000, 0x40000000, 0x20000000]) {
    expect(call("clone", flag | SIGCHLD)).toBe("errno 1");
  }
  expect(call("clone3")).toBe("errno 38");
  expect(call("ioctl", 0, 0x5413)).toBe(ALLOWED); // terminal size
  expect(call("ioctl", 0, 0x5412)).toBe("errno 1");
  expect(call("ioctl", 0, 0x541c)).toBe("errno 1");
  for (const name of ["socket", "socketpair"] as const) {
    for (const family of [1, 2, 10, 16]) expect(call(name, family)).toBe(ALLOWED);
    for (const family of [17, 38, 40]) expect(call(name, family)).toBe("errno 97");
  }
});

test("another architecture's calls, and x32's, end the process", () => {
  const I386 = 0x40000003;
  expect(run("x64", { number: 39, architecture: I386 })).toBe(KILLED);
  expect(run("arm64", { number: 39, architecture: ARCHITECTURES.x64 })).toBe(KILLED);
  expect(run("x64", { number: 0x40000000 + 39 })).toBe(KILLED);
});

test.runIf(existsSync(HEADER))("the numbers are those of the kernel's own header", () => {
  const header = readFileSync(HEADER, "utf8");
  for (const [name, { x64 }] of Object.entries({ ...REFUSED_SYSCALLS, ...EXAMINED_SYSCALLS })) {
    expect(header).toMatch(new RegExp(`#define __NR_${name} ${x64}\\b`));
  }
});

/** A machine for the few instructions that the filter uses. */
function run(processor: Processor, call: Call): string {
  const program = seccompFilter(processor);
  const data = Buffer.alloc(64);
  data.writeUInt32LE(call.number, 0);
  data.writeUInt32LE(call.architecture ?? ARCHITECTURES[processor], 4);
  (call.arguments ?? []).forEach((value, index) => {
    data.writeBigUInt64LE(BigInt(value), 16 + index * 8);
  });
  let accumulator = 0;
  for (let at = 0; ; at += 8) {
    const operand = program.readUInt32LE(at + 4);
    const branch = (isTrue: boolean) => {
      at += program.readUInt8(at + (isTrue ? 2 : 3)) * 8;
    };
    switch (program.readUInt16LE(at)) {
      case 0x20:
        accumulator = data.readUInt32LE(operand);
        break;
      case 0x15:
        branch(accumulator === operand);
        break;
      case 0x35:
        branch(accumulator >= operand);
        break;
      case 0x45:
        branch((accumulator & operand) !== 0);
        break;
      case 0x06:
        if (operand === 0x7fff0000) return ALLOWED;
        return operand === 0x80000000 ? KILLED : `errno ${operand & 0xffff}`;
      default:
        throw new Error(`the filter has an unknown instruction at ${at / 8}`);
    }
  }
}
