import { EXAMINED_SYSCALLS, REFUSED_SYSCALLS } from "./seccomp-syscalls.ts";

export type Processor = "x64" | "arm64";

const AUDIT_ARCH = { x64: 0xc000003e, arm64: 0xc00000b7 } as const;
const X32_BIT = 0x40000000;

// Offsets in struct seccomp_data; the low half of an argument comes first on both processors.
const NUMBER = 0;
const ARCHITECTURE = 4;
const ARGUMENT_0 = 16;
const ARGUMENT_1 = 24;

const LOAD_WORD = 0x20;
const JUMP_EQUAL = 0x15;
const JUMP_NOT_LESS = 0x35;
const JUMP_ANY_BIT = 0x45;
const RETURN = 0x06;

const ALLOW = 0x7fff0000;
const KILL_PROCESS = 0x80000000;
const refuse = (errno: number): number => 0x00050000 | errno;
const EPERM = 1;
const ENOSYS = 38;
const EAFNOSUPPORT = 97;

/** Every CLONE_NEW* flag that clone() takes. */
const NEW_NAMESPACE_FLAGS = 0x7e020000;
/** Both put characters into a terminal's input as if they had been typed. */
const TYPING_IOCTLS = [0x5412, 0x541c];
/** unspecified, unix, inet, inet6, netlink. Others, vsock above all, are not bounded by a network namespace. */
const SOCKET_FAMILIES = [0, 1, 2, 10, 16];

interface Instruction {
  code: number;
  whenTrue: number;
  whenFalse: number;
  operand: number;
}

const load = (offset: number): Instruction => ({
  code: LOAD_WORD,
  whenTrue: 0,
  whenFalse: 0,
  operand: offset,
});
const jump = (code: number, operand: number, whenTrue: number, whenFalse: number): Instruction => ({
  code,
  whenTrue,
  whenFalse,
  operand,
});
const answer = (value: number): Instruction => ({ code: RETURN, whenTrue: 0, whenFalse: 0, operand: value });

/** Runs `body` when the loaded system call number is `number`; `body` has to end with an answer. */
const whenNumberIs = (number: number, body: readonly Instruction[]): Instruction[] => [
  jump(JUMP_EQUAL, number, 0, body.length),
  ...body,
];

function examine(processor: Processor): Instruction[] {
  const number = (name: keyof typeof EXAMINED_SYSCALLS) => EXAMINED_SYSCALLS[name][processor];
  const family = [
    load(ARGUMENT_0),
    ...SOCKET_FAMILIES.map((known, index) => jump(JUMP_EQUAL, known, SOCKET_FAMILIES.length - index, 0)),
    answer(refuse(EAFNOSUPPORT)),
    answer(ALLOW),
  ];
  return [
    ...whenNumberIs(number("clone"), [
      load(ARGUMENT_0),
      jump(JUMP_ANY_BIT, NEW_NAMESPACE_FLAGS, 0, 1),
      answer(refuse(EPERM)),
      answer(ALLOW),
    ]),
    // Its flags lie in memory, out of a filter's sight. C libraries fall back to clone on ENOSYS.
    ...whenNumberIs(number("clone3"), [answer(refuse(ENOSYS))]),
    ...whenNumberIs(number("ioctl"), [
      load(ARGUMENT_1),
      ...TYPING_IOCTLS.map((request, index) => jump(JUMP_EQUAL, request, TYPING_IOCTLS.length - index, 0)),
      answer(ALLOW),
      answer(refuse(EPERM)),
    ]),
    ...whenNumberIs(number("socket"), family),
    ...whenNumberIs(number("socketpair"), family),
  ];
}

/** The sandbox's system call filter as the kernel takes it: an array of struct sock_filter. */
export function seccompFilter(processor: Processor): Buffer {
  const refused = Object.values(REFUSED_SYSCALLS).flatMap((numbers) => {
    const number: number | undefined = numbers[processor];
    return number === undefined ? [] : whenNumberIs(number, [answer(refuse(EPERM))]);
  });
  const program = [
    load(ARCHITECTURE),
    jump(JUMP_EQUAL, AUDIT_ARCH[processor], 1, 0),
    answer(KILL_PROCESS),
    load(NUMBER),
    ...(processor === "x64" ? [jump(JUMP_NOT_LESS, X32_BIT, 0, 1), answer(KILL_PROCESS)] : []),
    ...examine(processor),
    ...refused,
    answer(ALLOW),
  ];
  const bytes = Buffer.alloc(program.length * 8);
  program.forEach((instruction, index) => {
    bytes.writeUInt16LE(instruction.code, index * 8);
    bytes.writeUInt8(instruction.whenTrue, index * 8 + 2);
    bytes.writeUInt8(instruction.whenFalse, index * 8 + 3);
    bytes.writeUInt32LE(instruction.operand >>> 0, index * 8 + 4);
  });
  return bytes;
}
