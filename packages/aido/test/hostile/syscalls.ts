/** A number is passed as it is, a text as a pointer to it. */
type Argument = number | string;
interface Call {
  readonly x64: number;
  readonly arm64: number;
  readonly arguments: readonly Argument[];
}

const call = (x64: number, arm64: number, ...parameters: Argument[]): Call => ({
  x64,
  arm64,
  arguments: parameters,
});
const NEW_USER = 0x10000000;
const BUFFER = "\\0".repeat(128);

/** What code that wants out of its sandbox would ask the kernel for. None of it is harmful where it is refused. */
export const FORBIDDEN_CALLS: Readonly<Record<string, Call>> = {
  "a user namespace": call(272, 97, NEW_USER),
  "a mount namespace": call(272, 97, 0x20000),
  "a network namespace": call(272, 97, 0x40000000),
  "a child in a user namespace": call(56, 220, NEW_USER + 17, 0, 0, 0, 0),
  "a file system": call(165, 40, "none", "/tmp", "tmpfs", 0, 0),
  "another view of the root": call(165, 40, "/", "/tmp", "", 4096, 0),
  "less over /proc": call(166, 39, "/proc", 2),
  "another root": call(155, 41, ".", "."),
  "a root below": call(161, 51, "/tmp"),
  "a mount as a tree": call(428, 428, -100, "/", 1),
  "a new file system": call(430, 430, "tmpfs", 0),
  "other mount flags": call(442, 442, -100, "/", 0, BUFFER, 32),
  "the session's keys": call(250, 219, 0, -3, 0),
  "a new key": call(248, 217, "user", "aido", "x", 1, -3),
  "a program in the kernel": call(321, 280, 0, BUFFER, 64),
  "page faults": call(323, 282, 0),
  "events of the processor": call(298, 241, BUFFER, 0, -1, -1, 0),
  "another kernel": call(246, 104, 0, 0, 0, 0),
  "a kernel module": call(175, 105, "x", 1, ""),
  "fewer modules": call(176, 106, "aido", 0),
  "the restart key": call(169, 142, 0xfee1dead, 672274793, 0, 0),
  "more swap": call(167, 224, "/tmp/none", 0),
  "another host name": call(170, 161, "pwned", 5),
  "another domain": call(171, 162, "pwned", 5),
  "another time": call(164, 170, 0, 0),
  "process accounting": call(163, 89, "/tmp/none"),
  "the kernel's log": call(103, 116, 3, BUFFER, 100),
  "a file by its handle": call(304, 265, -100, "\\x04\\0\\0\\0\\x01\\0\\0\\0aaaa", 0),
  "the supervisor's trace": call(101, 117, 16, 1, 0, 0),
  "the supervisor's seizure": call(101, 117, 0x4206, 1, 0, 0),
  "whole file systems' events": call(300, 262, 0, 0),
  "a disk": call(133, 33, "/tmp/disk", 0o60666, 0x800),
  "the machine's memory": call(133, 33, "/tmp/memory", 0o20666, 0x101),
  "other groups": call(116, 159, 0, 0),
};

/** Refused by our own filter; engines before 25 leave it open in theirs. */
export const LOCAL_FORBIDDEN_CALLS: Readonly<Record<string, Call>> = {
  ...FORBIDDEN_CALLS,
  "a ring of requests": call(425, 425, 1, BUFFER),
};

/** Perl's interpreter of it prints `name errno` for each call; 0 means the kernel did it. */
export function perlOfCalls(calls: Readonly<Record<string, Call>>): string {
  const lines = Object.entries(calls).map(([name, { x64, arm64, arguments: parameters }]) => {
    const values = parameters.map((value) =>
      typeof value === "number" ? String(value) : `"${value.replaceAll("$", "\\$").replaceAll("@", "\\@")}"`,
    );
    // mknod has no number of its own on the newer architecture; mknodat takes a directory first.
    const directory = arm64 === 33 ? "($arm ? (-100) : ())," : "";
    return `attempt("${name}", $arm ? ${arm64} : ${x64}, ${directory}${values.join(", ")});`;
  });
  return `
my $arm = \`uname -m\` =~ /aarch64/;
sub attempt {
  my ($name, $number, @rest) = @_;
  $! = 0;
  my $result = syscall($number, @rest);
  exit 0 if $result == 0 && $name =~ /^a child/ && getppid() != $ENV{OWN};
  print "$name ", ($result < 0 ? $! + 0 : 0), "\\n";
}
$| = 1;
$ENV{OWN} = getppid();
${lines.join("\n")}
print "done 1\\n";
`;
}
