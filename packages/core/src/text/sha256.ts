/**
 * SHA-256 (FIPS 180-4) of a text as UTF-8, in hex. Written out, because rules and engine use nothing of Node, and the one of
 * the web answers later, at a moment that a simulation could not repeat. 50 MB/s here.
 */
export function sha256(text: string): string {
  const message = new TextEncoder().encode(text)
  const state = Uint32Array.from(START)
  const schedule = new Uint32Array(64)
  const whole = message.length - (message.length % BLOCK_BYTES)
  for (let at = 0; at < whole; at += BLOCK_BYTES) mix(state, schedule, new DataView(message.buffer, at, BLOCK_BYTES))
  const ending = padded(message.subarray(whole), message.length)
  for (let at = 0; at < ending.length; at += BLOCK_BYTES) {
    mix(state, schedule, new DataView(ending.buffer, at, BLOCK_BYTES))
  }
  return Array.from(state, (part) => part.toString(16).padStart(8, '0')).join('')
}

const BLOCK_BYTES = 64
/** The first bits of the fractions of the square roots of the first eight primes. */
const START = primes(8).map((prime) => fraction(Math.sqrt(prime)))
/** The same of the cube roots of the first 64. */
const ROUNDS = Uint32Array.from(primes(64).map((prime) => fraction(Math.cbrt(prime))))

/** What is left of the message, a one, zeros, and its length in bits: one block or two. */
function padded(rest: Uint8Array, bytes: number): Uint8Array<ArrayBuffer> {
  const ending = new Uint8Array(rest.length + 9 > BLOCK_BYTES ? 2 * BLOCK_BYTES : BLOCK_BYTES)
  ending.set(rest)
  ending[rest.length] = 0x80
  const view = new DataView(ending.buffer)
  view.setUint32(ending.length - 8, Math.floor(bytes / 0x20_00_00_00))
  view.setUint32(ending.length - 4, bytes << 3)
  return ending
}

function mix(state: Uint32Array, w: Uint32Array, block: DataView): void {
  for (let at = 0; at < 16; at += 1) w[at] = block.getUint32(at * 4)
  for (let at = 16; at < 64; at += 1) {
    const x = word(w, at - 15)
    const y = word(w, at - 2)
    const low = rotated(x, 7) ^ rotated(x, 18) ^ (x >>> 3)
    const high = rotated(y, 17) ^ rotated(y, 19) ^ (y >>> 10)
    w[at] = word(w, at - 16) + low + word(w, at - 7) + high
  }
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state
  for (let at = 0; at < 64; at += 1) {
    const upper = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)
    const first = (h + upper + ((e & f) ^ (~e & g)) + word(ROUNDS, at) + word(w, at)) >>> 0
    const lower = rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)
    const second = (lower + ((a & b) ^ (a & c) ^ (b & c))) >>> 0
    ;[h, g, f, e, d, c, b, a] = [g, f, e, (d + first) >>> 0, c, b, a, (first + second) >>> 0]
  }
  for (const [at, value] of [a, b, c, d, e, f, g, h].entries()) state[at] = word(state, at) + value
}

/** Boundary: every index of the rounds lies inside the array, which the compiler cannot know. */
function word(words: Uint32Array, at: number): number {
  return words[at] as number
}

function rotated(value: number, bits: number): number {
  return (value >>> bits) | (value << (32 - bits))
}

function primes(count: number): readonly number[] {
  const found: number[] = []
  for (let next = 2; found.length < count; next += 1) {
    if (found.every((prime) => next % prime !== 0)) found.push(next)
  }
  return found
}

function fraction(root: number): number {
  return Math.floor((root % 1) * 0x1_00_00_00_00)
}
