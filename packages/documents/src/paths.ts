/**
 * File names on Linux are bytes, and need not be UTF-8. Everywhere in this package a path is a text that stands for exactly one
 * sequence of bytes: a byte that is no UTF-8 becomes a character from U+F780 to U+F7FF, which are private. A name that really has
 * such characters has its bytes written the same way, so that nothing is lost and nothing is mistaken for something else.
 */
const FIRST = 0xf7_00
const ESCAPES = /[\uF780-\uF7FF]/

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export function pathOf(bytes: Buffer): string {
  try {
    const text = utf8.decode(bytes)
    return ESCAPES.test(text) ? escaped(bytes) : text
  } catch {
    return escaped(bytes)
  }
}

/** What the functions of `node:fs` take. */
export function nativePath(path: string): string | Buffer {
  if (!ESCAPES.test(path)) return path
  const pieces = Array.from(path, (char) => {
    const code = char.charCodeAt(0)
    return code >= FIRST + 0x80 && code <= FIRST + 0xff ? Buffer.from([code - FIRST]) : Buffer.from(char)
  })
  return Buffer.concat(pieces)
}

/** For people: bytes that are no character are shown as such. */
export function shownPath(path: string): string {
  return ESCAPES.test(path) ? Buffer.from(nativePath(path)).toString('utf8') : path
}

function escaped(bytes: Buffer): string {
  let text = ''
  let at = 0
  while (at < bytes.length) {
    const length = characterAt(bytes, at)
    const piece = length === 0 ? '' : bytes.toString('utf8', at, at + length)
    if (length === 0 || ESCAPES.test(piece)) {
      for (const byte of bytes.subarray(at, at + Math.max(1, length))) text += String.fromCharCode(FIRST + byte)
    } else text += piece
    at += Math.max(1, length)
  }
  return text
}

/** How many bytes the character at `at` has; 0 if there is none. */
function characterAt(bytes: Buffer, at: number): number {
  for (const length of [1, 2, 3, 4]) {
    if (at + length > bytes.length) return 0
    try {
      utf8.decode(bytes.subarray(at, at + length))
      return length
    } catch {
      // Perhaps a longer one.
    }
  }
  return 0
}
