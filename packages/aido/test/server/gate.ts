/** Lets a program wait until the test says so. */
export function gate(): { released: Promise<void>; release: () => void } {
  let open: () => void = () => undefined;
  const released = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { released, release: () => open() };
}
