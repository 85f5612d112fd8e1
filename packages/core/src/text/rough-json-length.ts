/** What a value takes beside its texts: quotes, brackets, commas; for a number, its digits. */
const NODE_BYTES = 4
const NUMBER_BYTES = 8

/**
 * About as many bytes as a value has as JSON, without writing it. Stops counting beyond `max`, so that a look at a large value
 * costs little more than one at `max` bytes.
 */
export function roughJsonLength(value: unknown, max: number = Number.POSITIVE_INFINITY): number {
  let bytes = 0
  const open: unknown[] = [value]
  while (open.length > 0 && bytes <= max) {
    const one = open.pop()
    bytes += NODE_BYTES
    if (typeof one === 'string') bytes += one.length
    else if (typeof one === 'number') bytes += NUMBER_BYTES
    else if (typeof one === 'object' && one !== null) {
      const isList = Array.isArray(one)
      for (const [key, inner] of Object.entries(one)) {
        if (!isList) bytes += key.length
        open.push(inner)
      }
    }
  }
  return bytes
}
