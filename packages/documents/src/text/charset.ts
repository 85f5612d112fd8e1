/** How a text was written down, and the text. */
export interface Decoded {
  readonly text: string
  readonly charset: string
}

/** Bytes that decide; the rest of a file is in the same charset. */
const SAMPLE_BYTES = 65_536

const CYRILLIC_CHARSETS = ['windows-1251', 'koi8-r', 'ibm866', 'iso-8859-5', 'x-mac-cyrillic'] as const

/** How often Russian letters occur, in tenths of a percent. Rare ones cost, because wrong charsets are full of them. */
const FREQUENCIES: Readonly<Record<string, number>> = {
  о: 110, е: 85, а: 80, и: 74, н: 67, т: 63, с: 55, р: 47, в: 45, л: 43, к: 35, м: 32, д: 30, п: 28, у: 26, я: 20,
  ы: 19, ь: 17, г: 17, з: 16, б: 16, ч: 14, й: 12, х: 10, ж: 9, ш: 7, ю: 6, ц: 5, щ: 4, э: 3, ф: 3, ъ: 1, ё: 1,
} // prettier-ignore

/**
 * The text of bytes in an unknown charset. What is certain decides first: a byte order mark, then bytes that are valid
 * UTF-8, then zero bytes in every second place. What is left is old Cyrillic or Western; the one that gives the most Russian wins.
 */
export function decodeText(bytes: Uint8Array, declared?: string): Decoded {
  if (isUtf32(bytes)) return { text: utf32(bytes), charset: 'utf-32' }
  const marked = byOrderMark(bytes)
  if (marked !== undefined) return decodedAs(marked, bytes)
  const wide = wideCharset(bytes)
  if (wide !== undefined) return decodedAs(wide, bytes)
  const utf8 = strictUtf8(bytes)
  if (utf8 !== undefined) return { text: utf8, charset: 'utf8' }
  if (declared !== undefined && isSingleByte(declared)) return decodedAs(declared, bytes)
  return decodedAs(guessed(bytes.subarray(0, SAMPLE_BYTES)), bytes)
}

/** Its mark begins like the one of UTF-16; a text in UTF-16 does not begin with the character zero. */
function isUtf32([a, b, c, d]: Uint8Array): boolean {
  return (a === 0xff && b === 0xfe && c === 0 && d === 0) || (a === 0 && b === 0 && c === 0xfe && d === 0xff)
}

function utf32(bytes: Uint8Array): string {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const isLittle = bytes[0] === 0xff
  const pieces: string[] = []
  for (let at = 4; at + 4 <= bytes.length; at += 4) {
    const code = view.getUint32(at, isLittle)
    pieces.push(code > 0x10_ff_ff || (code >= 0xd8_00 && code <= 0xdf_ff) ? '\uFFFD' : String.fromCodePoint(code))
  }
  return pieces.join('')
}

function byOrderMark(bytes: Uint8Array): string | undefined {
  const [a, b, c] = bytes
  if (a === 0xef && b === 0xbb && c === 0xbf) return 'utf8'
  if (a === 0xff && b === 0xfe) return 'utf-16le'
  if (a === 0xfe && b === 0xff) return 'utf-16be'
  return undefined
}

function decodedAs(charset: string, bytes: Uint8Array): Decoded {
  return { text: new TextDecoder(charset).decode(bytes), charset }
}

/** A file that was cut in the middle of a character, as by a limit, is UTF-8 all the same. */
function strictUtf8(bytes: Uint8Array): string | undefined {
  for (let cut = 0; cut <= 3; cut += 1) {
    try {
      return new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(0, bytes.length - cut))
    } catch {
      // The next cut may end it between two characters.
    }
  }
  return undefined
}

/** UTF-16 without a mark: one of two bytes is nearly always 0x00 (Latin, digits, spaces) or 0x04 (Cyrillic). */
export function wideCharset(bytes: Uint8Array): string | undefined {
  const sample = bytes.subarray(0, Math.min(bytes.length, 4_096) & ~1)
  if (sample.length < 4) return undefined
  let even = 0
  let odd = 0
  let zeros = 0
  for (let at = 0; at < sample.length; at += 2) {
    if (isHighByte(sample[at])) even += 1
    if (isHighByte(sample[at + 1])) odd += 1
    if (sample[at] === 0 || sample[at + 1] === 0) zeros += 1
  }
  const pairs = sample.length / 2
  // Spaces alone are zeros in every text of words; text in one byte a character has none at all.
  if (zeros < pairs * 0.02) return undefined
  if (odd > pairs * 0.9 && even < pairs * 0.5) return 'utf-16le'
  return even > pairs * 0.9 && odd < pairs * 0.5 ? 'utf-16be' : undefined
}

function isHighByte(byte: number | undefined): boolean {
  return byte === 0 || byte === 4
}

function isSingleByte(charset: string): boolean {
  try {
    return !new TextDecoder(charset).encoding.startsWith('utf')
  } catch {
    return false
  }
}

function guessed(sample: Uint8Array): string {
  let best = 'windows-1252'
  let bestScore = westernScore(new TextDecoder('windows-1252').decode(sample))
  for (const charset of CYRILLIC_CHARSETS) {
    const score = russianScore(new TextDecoder(charset).decode(sample))
    if (score > bestScore) {
      best = charset
      bestScore = score
    }
  }
  return best
}

const LETTER = /\p{L}/u
const ASCII_LETTER = /[a-z]/i

/** The mean worth of the characters beyond ASCII: frequent letters count for it, a capital within a word counts against. */
function russianScore(text: string): number {
  let score = 0
  let count = 0
  let before = ' '
  for (const letter of text) {
    if (letter > '\u007F') {
      count += 1
      // Beside a Latin letter a Cyrillic one is a wrong guess, mostly.
      score += ASCII_LETTER.test(before) ? -80 : worthOf(letter, before)
    } else if (before > '\u007F' && ASCII_LETTER.test(letter)) score -= 80
    before = letter
  }
  return count === 0 ? 0 : score / count
}

function worthOf(letter: string, before: string): number {
  const lower = letter.toLowerCase()
  const frequency = FREQUENCIES[lower]
  if (frequency === undefined) return /[«»№—–…“”„’\u00A0]/.test(letter) ? 0 : -60
  if (letter === lower) return frequency
  // A word in capitals is fine; a capital after a small letter is what a wrong charset looks like.
  if (before === before.toLowerCase() && FREQUENCIES[before] !== undefined) return -80
  return frequency * 0.8
}

/** Western texts are mostly ASCII with single letters between: their letters stand beside ASCII letters. */
function westernScore(text: string): number {
  let beside = 0
  let count = 0
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at] ?? ''
    if (letter <= '\u007F') continue
    count += 1
    const isLetter = LETTER.test(letter)
    const neighbours = `${text[at - 1] ?? ''}${text[at + 1] ?? ''}`
    if (isLetter && /[a-z]/i.test(neighbours)) beside += 1
    else if (!isLetter && /[“”‘’–—«»…€°§©®\u00A0]/.test(letter)) beside += 0.5
  }
  return count === 0 ? 1 : (beside / count) * 70 - 30
}
