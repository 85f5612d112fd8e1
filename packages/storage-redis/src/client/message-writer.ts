/** Initial buffer size, enough for most bundles. A longer one makes it grow. */
const SIZE = 65_536
/** A buffer larger than this is released after use. */
const KEPT_MAX = 1_048_576
/** For longer text the runtime's encoder is faster than writing character by character. */
const SHORT = 64
/** The maximum size of a number, or of the head of any other value. */
const HEAD_MAX = 9
/** The size of what precedes an argument of three digits, and of what ends it. */
const USUAL_HEAD = 6
const LINE_END = 2

const double = new Float64Array(1)
const doubleBytes = new Uint8Array(double.buffer)

/**
 * Writes values as plain MessagePack, one after the other into one buffer, with the semantics of JSON: properties
 * without a value are left out.
 *
 * Optimized for what a job's step sends: many small values of a few shapes, a hundred at a time. The library that
 * decodes them takes twice as long to encode them, and it writes the properties without a value, which are a third of a
 * job.
 */
export class MessageWriter {
  #bytes = Buffer.allocUnsafeSlow(SIZE)
  #at = 0

  get length(): number {
    return this.#at
  }

  /** The bytes written since the start, or since they were last taken. */
  take(): Buffer {
    const taken = Buffer.from(this.#bytes.subarray(0, this.#at))
    this.#at = 0
    if (this.#bytes.length > KEPT_MAX) this.#bytes = Buffer.allocUnsafeSlow(SIZE)
    return taken
  }

  /** Discards everything written beyond this length. */
  rewind(length: number): void {
    this.#at = length
  }

  /** Copies what was written to another buffer, and begins anew. Returns how many bytes it was. */
  moveTo(target: Buffer, at: number): number {
    const length = this.#bytes.copy(target, at, 0, this.#at)
    this.#at = 0
    if (this.#bytes.length > KEPT_MAX) this.#bytes = Buffer.allocUnsafeSlow(SIZE)
    return length
  }

  /** A value as an argument of a command: with its length before it, as the server's protocol wants it. */
  argument(value: unknown): void {
    const start = this.#at
    this.#reserve(USUAL_HEAD)
    this.#at += USUAL_HEAD
    this.value(value)
    const length = this.#at - start - USUAL_HEAD
    const head = `$${length}\r\n`
    this.#reserve(HEAD_MAX + LINE_END)
    if (head.length !== USUAL_HEAD) {
      this.#bytes.copyWithin(start + head.length, start + USUAL_HEAD, this.#at)
      this.#at += head.length - USUAL_HEAD
    }
    this.#bytes.write(head, start, 'latin1')
    this.#bytes[this.#at++] = 0x0d
    this.#bytes[this.#at++] = 0x0a
  }

  value(value: unknown): void {
    switch (typeof value) {
      case 'string':
        this.#text(value)
        return
      case 'number':
        this.#number(value)
        return
      case 'boolean':
        this.#byte(value ? 0xc3 : 0xc2)
        return
      case 'undefined':
        this.#byte(0xc0)
        return
      case 'object':
        if (value === null) this.#byte(0xc0)
        else if (Array.isArray(value)) this.#list(value)
        else this.#map(value)
        return
      default:
        throw new TypeError(`A ${typeof value} cannot be stored`)
    }
  }

  #byte(byte: number): void {
    this.#reserve(1)
    this.#bytes[this.#at] = byte
    this.#at += 1
  }

  #number(value: number): void {
    this.#reserve(HEAD_MAX)
    // Negative zero is not encoded as an integer.
    if (value >>> 0 === value && (value !== 0 || 1 / value > 0)) {
      if (value < 0x80) this.#bytes[this.#at++] = value
      else if (value < 0x1_00) this.#head(0xcc, 1, value)
      else if (value < 0x1_00_00) this.#head(0xcd, 2, value)
      else this.#head(0xce, 4, value)
    } else if (value < 0 && Math.trunc(value) === value && value >= -0x20) {
      this.#bytes[this.#at++] = value & 0xff
    } else {
      const bytes = this.#bytes
      let at = this.#at
      double[0] = value
      bytes[at++] = 0xcb
      for (let index = 7; index >= 0; index -= 1) bytes[at++] = doubleBytes[index] as number
      this.#at = at
    }
  }

  #text(text: string): void {
    const { length } = text
    if (length > SHORT || !this.#ascii(text, length)) this.#longText(text)
  }

  /** Returns false if the text has other characters; then nothing was written. */
  #ascii(text: string, length: number): boolean {
    this.#reserve(length + 2)
    const bytes = this.#bytes
    let at = this.#at
    if (length < 0x20) bytes[at++] = 0xa0 | length
    else {
      bytes[at++] = 0xd9
      bytes[at++] = length
    }
    for (let index = 0; index < length; index += 1) {
      const code = text.charCodeAt(index)
      if (code > 0x7f) return false
      bytes[at++] = code
    }
    this.#at = at
    return true
  }

  #longText(text: string): void {
    const size = Buffer.byteLength(text)
    this.#reserve(size + HEAD_MAX)
    if (size < 0x20) this.#bytes[this.#at++] = 0xa0 | size
    else if (size < 0x1_00) this.#head(0xd9, 1, size)
    else if (size < 0x1_00_00) this.#head(0xda, 2, size)
    else this.#head(0xdb, 4, size)
    this.#at += this.#bytes.write(text, this.#at)
  }

  #list(list: readonly unknown[]): void {
    const { length } = list
    this.#reserve(HEAD_MAX)
    if (length < 0x10) this.#bytes[this.#at++] = 0x90 | length
    else if (length < 0x1_00_00) this.#head(0xdc, 2, length)
    else this.#head(0xdd, 4, length)
    for (const one of list) this.value(one)
  }

  #map(map: object): void {
    const keys = Object.keys(map)
    const start = this.#at
    // The count is known only at the end, but the maximum size of its encoding is known now.
    const size = keys.length < 0x10 ? 0 : keys.length < 0x1_00_00 ? 2 : 4
    this.#reserve(HEAD_MAX)
    this.#at += 1 + size
    let count = 0
    for (const key of keys) {
      const value: unknown = map[key as keyof typeof map]
      if (value === undefined) continue
      this.#text(key)
      this.value(value)
      count += 1
    }
    const end = this.#at
    this.#at = start
    if (size === 0) this.#bytes[this.#at] = 0x80 | count
    else this.#head(size === 2 ? 0xde : 0xdf, size, count)
    this.#at = end
  }

  #head(type: number, size: 1 | 2 | 4, value: number): void {
    const bytes = this.#bytes
    bytes[this.#at++] = type
    for (let shift = 8 * (size - 1); shift >= 0; shift -= 8) bytes[this.#at++] = (value >>> shift) & 0xff
  }

  #reserve(size: number): void {
    if (this.#at + size <= this.#bytes.length) return
    const larger = Buffer.allocUnsafeSlow(2 * (this.#at + size))
    this.#bytes.copy(larger, 0, 0, this.#at)
    this.#bytes = larger
  }
}
