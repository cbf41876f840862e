import { FAKE_PROGRAMS, type FakeProgram } from "../../src/drivers/fake/fake-program.ts";

/** `sh -c "one; two"`: each part is a fake program and its words, `$NAME` is a variable; the last exit code counts. */
export const FAKE_SHELL: Readonly<Record<string, FakeProgram>> = {
  sh: async (process) => {
    let code: number | undefined;
    for (const part of (process.argv[2] ?? "").split(";")) {
      const words = part.trim().split(/\s+/);
      const argv = words.map((word) =>
        word.replace(/\$(\w+)/g, (_, name: string) => process.env[name] ?? ""),
      );
      const program = FAKE_PROGRAMS[argv[0] ?? ""];
      if (program === undefined) {
        await process.stderr(`sh: ${argv[0]}: not found\n`);
        return 127;
      }
      code = (await program({ ...process, argv })) ?? 0;
    }
    return code ?? 0;
  },
};
