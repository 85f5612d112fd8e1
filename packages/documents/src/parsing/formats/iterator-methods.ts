/**
 * The PDF reader uses two methods of iterators that Node has from version 22 on. They are added where they are missing, in the
 * process that reads files and nowhere else.
 */
export function addIteratorMethods(): void {
  const iterators: object = Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]())) as object
  define(iterators, 'find', function find(this: Iterable<unknown>, matches: (value: unknown) => boolean): unknown {
    for (const value of this) if (matches(value)) return value
    return undefined
  })
  define(iterators, 'some', function some(this: Iterable<unknown>, matches: (value: unknown) => boolean): boolean {
    for (const value of this) if (matches(value)) return true
    return false
  })
}

function define(target: object, name: string, method: unknown): void {
  if (!(name in target)) Object.defineProperty(target, name, { value: method, configurable: true, writable: true })
}
