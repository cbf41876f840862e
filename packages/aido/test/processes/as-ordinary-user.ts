/** Nothing is closed to root; every other user is that already. */
export function asOrdinaryUser(): Disposable {
  const isRoot = process.getuid?.() === 0;
  if (isRoot) process.seteuid?.(65534);
  return { [Symbol.dispose]: () => (isRoot ? process.seteuid?.(0) : undefined) };
}
