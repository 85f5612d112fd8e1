import type { Readable } from 'node:stream'

/** The lines of an input. One that is longer than the bound is dropped, and given as `undefined`. */
export async function* inputLines(input: Readable, bytesMax: number): AsyncGenerator<string | undefined> {
  let pending: Buffer[] = []
  let bytes = 0
  let isDropped = false
  for await (const piece of input) {
    let rest = Buffer.isBuffer(piece) ? piece : Buffer.from(String(piece))
    for (let end = rest.indexOf(NEWLINE); end !== -1; end = rest.indexOf(NEWLINE)) {
      const line = Buffer.concat([...pending, rest.subarray(0, end)])
      rest = rest.subarray(end + 1)
      const isTooLong = isDropped || line.length > bytesMax
      pending = []
      bytes = 0
      isDropped = false
      const text = isTooLong ? undefined : line.toString('utf8').trim()
      if (text !== '') yield text
    }
    bytes += rest.length
    if (bytes > bytesMax) isDropped = true
    pending = isDropped ? [] : [...pending, rest]
  }
}

const NEWLINE = 0x0a
